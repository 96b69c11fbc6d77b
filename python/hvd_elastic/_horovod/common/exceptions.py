"""The exceptions that programs catch."""

from ... import _error


class HorovodInternalError(_error.Revoked):
    """A collective has failed: `elastic.run` goes back to the last commit."""


class HostsUpdatedInterrupt(_error.HostsUpdated):
    """The membership changes here; nothing is lost."""

    def __init__(self, skip_sync: bool = False) -> None:
        super().__init__("the membership changes")
        self.skip_sync = skip_sync
