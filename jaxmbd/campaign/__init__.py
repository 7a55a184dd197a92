"""Studies: thousands of variants of a model, drawn, computed and kept in a store that survives.

A `Study` is a model, what varies, and what is observed. `Study.run` computes all samples in chunks,
each kept durably as soon as it is there: a run that is killed is continued by the same call.

- `model` and `origin` are the parts of a study, `study_file` reads one;
- `store_layout` is what is on disk, `study_store` writes it so that it survives kills, full disks
  and power cuts;
- `session` holds a store for one run and finds what is damaged, `chunk_runner` computes what it
  lacks, here or by workers;
- `run` puts these together, with progress; `table` prints the spread of the outputs;
- `suspension_corner` is the demonstration's study.
"""

from jaxmbd.campaign.chunk_runner import Interrupted
from jaxmbd.campaign.model import Input
from jaxmbd.campaign.origin import provenance
from jaxmbd.campaign.run import remove_study
from jaxmbd.campaign.session import verify as verify_store
from jaxmbd.campaign.store_files import StoreDiffers, StoreError
from jaxmbd.campaign.study import Rerun, Study
from jaxmbd.campaign.study_file import load_study
from jaxmbd.campaign.study_store import StudyStore
from jaxmbd.campaign.suspension_corner import corner_study
from jaxmbd.campaign.table import missing_line, spread_table, spreads, status_line
from jaxmbd.variables import shown

__all__ = [
    "Input",
    "Interrupted",
    "Rerun",
    "StoreDiffers",
    "StoreError",
    "Study",
    "corner_study",
    "shown",
    "spread_table",
    "status_line",
]
