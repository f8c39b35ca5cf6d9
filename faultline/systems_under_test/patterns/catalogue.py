"""The thirty patterns of "Patterns of Distributed Systems" (Unmesh Joshi), and the module that implements each.

One record per pattern, in the order of the book. `module` is its name below `systems_under_test`, empty while it is
not implemented. The listing of the command line, the table in the README and the reference pages are made from it.
"""

from __future__ import annotations

import msgspec

__all__ = ["PATTERNS", "Pattern"]


class Pattern(msgspec.Struct, frozen=True):
    """One pattern: its name, the part and chapter of the book, its module, and whether that holds only a part of it."""

    name: str
    part: str
    chapter: int
    module: str = ""
    in_part: bool = False

    @property
    def slug(self) -> str:
        """The name as commands and file names have it: `low-water-mark`."""
        return self.name.lower().replace(" ", "-")

    @property
    def status(self) -> str:
        """`implemented`, `in part` or `planned`."""
        if not self.module:
            return "planned"
        return "in part" if self.in_part else "implemented"


_REPLICATION = "Data replication"
_PARTITIONING = "Data partitioning"
_TIME = "Distributed time"
_CLUSTER = "Cluster management"
_COMMUNICATION = "Communication between nodes"

PATTERNS = (
    Pattern("Write-Ahead Log", _REPLICATION, 3, "patterns.data_replication.write_ahead_log"),
    Pattern("Segmented Log", _REPLICATION, 4, "patterns.data_replication.segmented_log"),
    Pattern("Low-Water Mark", _REPLICATION, 5, "patterns.data_replication.low_water_mark"),
    Pattern("Leader and Followers", _REPLICATION, 6, "patterns.data_replication.leader_and_followers"),
    Pattern("HeartBeat", _REPLICATION, 7, "patterns.data_replication.heartbeat"),
    Pattern("Paxos", _REPLICATION, 8, "patterns.data_replication.paxos"),
    Pattern("Replicated Log", _REPLICATION, 9, "patterns.data_replication.replicated_log"),
    Pattern("Quorum", _REPLICATION, 10, "patterns.data_replication.quorum"),
    Pattern("Generation Clock", _REPLICATION, 11, "patterns.data_replication.generation_clock"),
    Pattern("High-Water Mark", _REPLICATION, 12, "patterns.data_replication.high_water_mark"),
    Pattern("Singular Update Queue", _REPLICATION, 13, "patterns.data_replication.singular_update_queue"),
    Pattern("Request Waiting List", _REPLICATION, 14, "patterns.data_replication.request_waiting_list"),
    Pattern("Idempotent Receiver", _REPLICATION, 15, "patterns.data_replication.idempotent_receiver"),
    Pattern("Follower Reads", _REPLICATION, 16, "patterns.data_replication.follower_reads"),
    Pattern("Versioned Value", _REPLICATION, 17, "patterns.data_replication.versioned_value"),
    Pattern("Version Vector", _REPLICATION, 18, "patterns.data_replication.version_vector"),
    Pattern("Fixed Partitions", _PARTITIONING, 19, "patterns.data_partitioning.fixed_partitions"),
    Pattern("Key-Range Partitions", _PARTITIONING, 20, "patterns.data_partitioning.key_range_partitions"),
    Pattern("Two Phase Commit", _PARTITIONING, 21, "patterns.data_partitioning.two_phase_commit"),
    Pattern("Lamport Clock", _TIME, 22, "patterns.distributed_time.lamport_clock"),
    Pattern("Hybrid Clock", _TIME, 23, "patterns.distributed_time.hybrid_clock"),
    Pattern("Clock-Bound Wait", _TIME, 24, "patterns.distributed_time.clock_bound_wait"),
    Pattern("Consistent Core", _CLUSTER, 25, "reference.consistent_core.system"),
    Pattern("Lease", _CLUSTER, 26, "patterns.cluster_management.lease"),
    Pattern("State Watch", _CLUSTER, 27, "patterns.cluster_management.state_watch"),
    Pattern("Gossip Dissemination", _CLUSTER, 28, "patterns.cluster_management.gossip_dissemination"),
    Pattern("Emergent Leader", _CLUSTER, 29, "patterns.cluster_management.emergent_leader"),
    Pattern("Single Socket Channel", _COMMUNICATION, 30, "patterns.node_communication.single_socket_channel"),
    Pattern("Request Batch", _COMMUNICATION, 31, "patterns.node_communication.request_batch"),
    Pattern("Request Pipeline", _COMMUNICATION, 32, "patterns.node_communication.request_pipeline"),
)
