"""A dry run: what an import would do to each line, and nothing done."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from service.application.commands.tell import ObservationItem, TellResult, outcome_of_known
from service.application.imports.import_tally import ImportTally
from service.application.imports.observation_files import opened_file
from service.application.imports.observation_lines import named
from service.domain import ObservationRecord
from service.errors import RewardConflict
from service.storage.queries import stored_experiments, stored_observations

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from service.application.imports.file_survey import Judge, PastData, Report
    from service.application.imports.observation_lines import Line
    from service.storage.database import Connection, Database


@dataclass(slots=True)
class Rehearsal:
    """Of one file. The ids that the file itself names are remembered, some hundred bytes each."""

    data: PastData
    judge: Judge
    source: str
    _in_file: dict[str, ObservationRecord] = field(default_factory=dict)

    async def run(self, database: Database, report: Report) -> ImportTally:
        """Every line, held against what the experiment has been told so far."""
        async with database.reading() as connection:
            experiment_id = await stored_experiments.experiment_id_of(connection, self.judge.key)
            positions = {key: place for place, key in (await stored_experiments.arm_keys(connection, experiment_id)).items()}
            return await self._play(connection, experiment_id, positions, report)

    async def run_on_nothing(self, arms: Sequence[str], report: Report) -> ImportTally:
        """Every line, as an experiment with these arms would take it that is not there yet."""
        return await self._play(None, 0, {key: place for place, key in enumerate(arms)}, report)

    async def _play(
        self, connection: Connection | None, experiment_id: int, positions: Mapping[str, int], report: Report
    ) -> ImportTally:
        tally = ImportTally()
        with opened_file(self.data.path, self.data.format, self.data.columns) as file:
            for lines in file.batches():
                sent = named(lines, self.source)
                ids = [line.item.id for line in sent if isinstance(line.item, ObservationItem) and line.item.id is not None]
                known = {} if connection is None else await stored_observations.observations_by_id(connection, experiment_id, ids)
                results = [self._result(line, one, known, positions) for line, one in zip(lines, sent, strict=True)]
                tally.add([line.number for line in lines], results)
                report(file.position, file.length)
        return tally

    def _result(self, line: Line, sent: Line, known: Mapping[str, ObservationRecord], positions: Mapping[str, int]) -> TellResult:
        """What would become of a line, by the rules of `Observe`."""
        item = sent.item
        if isinstance(item, TellResult):
            return item
        objection = self.judge.objection_to(item)
        if objection is not None:
            return objection
        position, reward, name = positions[item.arm], item.reward + 0.0, item.id or ""
        before = known.get(name) or self._in_file.get(name)
        if before is None:
            if sent is line:  # its own id, which may come again
                self._in_file[name] = ObservationRecord(name, position, reward, 0, 0, "rewarded", 0)
            return TellResult("recorded")
        try:
            return outcome_of_known(before, position, reward)
        except RewardConflict as refused:
            return TellResult("conflict", str(refused))
