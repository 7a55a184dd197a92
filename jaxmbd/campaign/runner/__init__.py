"""Run a study into its store: chunk by chunk, in this process or by an executor's workers."""

from jaxmbd.campaign.runner.chunk_runner import Interrupted, run_chunks
from jaxmbd.campaign.runner.report import ChunkReport, RunReport, Work
from jaxmbd.campaign.runner.study_session import Session, check_same, differences, session

__all__ = [
    "ChunkReport",
    "Interrupted",
    "RunReport",
    "Session",
    "Work",
    "check_same",
    "differences",
    "run_chunks",
    "session",
]
