FROM python:3.11-slim-bookworm AS builder

ENV PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1

RUN python -m venv /opt/bestarm
WORKDIR /src
# The dependencies first: this layer stays until the lock file changes. Every file is checked against its hash.
COPY requirements/service.txt requirements/service.txt
RUN /opt/bestarm/bin/pip install --require-hashes --only-binary :all: -r requirements/service.txt
COPY pyproject.toml README.md LICENSE ./
COPY service service
COPY migrations migrations
RUN /opt/bestarm/bin/pip install --no-deps .


FROM python:3.11-slim-bookworm

ENV PATH=/opt/bestarm/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    BESTARM_DATABASE_URL=sqlite:////var/lib/bestarm/bestarm.db

RUN groupadd --system --gid 10001 bestarm \
    && useradd --system --uid 10001 --gid bestarm --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin bestarm \
    && install --directory --owner=bestarm --group=bestarm --mode=0750 /var/lib/bestarm
COPY --from=builder /opt/bestarm /opt/bestarm

# By number, so that a cluster can see that it is not root.
USER 10001:10001
# The embedded database lives here when no PostgreSQL is named: mount a volume on it.
WORKDIR /var/lib/bestarm
EXPOSE 8000
# `serve` finishes the requests in flight on this signal.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as u; u.urlopen('http://127.0.0.1:' + os.environ.get('BESTARM_PORT', '8000') + '/readyz', timeout=4)"]
ENTRYPOINT ["bestarm"]
CMD ["serve"]
