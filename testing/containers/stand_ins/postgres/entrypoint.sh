#!/bin/sh
# As much of the official image's entrypoint as the compose file uses.
set -e
data=/var/lib/postgresql/data
if [ "$(id -u)" = 0 ]; then
  mkdir -p $data /var/run/postgresql
  chown postgres $data /var/run/postgresql
  chmod 700 $data
  exec gosu postgres "$0" "$@"
fi
if [ ! -s $data/PG_VERSION ]; then
  printf '%s' "$(cat "$POSTGRES_PASSWORD_FILE")" > /tmp/password
  initdb -D $data -U "$POSTGRES_USER" --pwfile=/tmp/password --auth-local=trust --auth-host=scram-sha-256 -E UTF8 > /dev/null
  rm /tmp/password
  echo "host all all all scram-sha-256" >> $data/pg_hba.conf
  pg_ctl -D $data -w -o "-c listen_addresses=''" start > /dev/null
  createdb -U "$POSTGRES_USER" "$POSTGRES_DB"
  pg_ctl -D $data -w -m fast stop > /dev/null
fi
exec postgres -D $data -c listen_addresses='*'
