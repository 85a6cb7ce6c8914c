//! Every bound of the runtime, with its unit and its reason. Nothing here is computed.

use std::time::Duration;

/// Encoded metadata of one message, in bytes: 2 + Σ(3 + key + value).
pub const METADATA_BYTES: usize = 1024;
/// Entries of one metadata snapshot.
pub const METADATA_ENTRIES: usize = 255;
/// Any payload and any complete message, in bytes: what the FlatBuffers builder can address.
pub const PAYLOAD_BYTES: usize = (1 << 31) - 1;
/// `max_message` of a MeshNode where none is set, in bytes.
pub const MESH_MESSAGE_BYTES: usize = 64 << 20;
/// `MaxMessageSize` of a ClientServer channel where none is set, in bytes.
pub const CLIENT_SERVER_MESSAGE_BYTES: usize = 16 << 20;
/// The least that a side may set as its greatest message, in bytes: the head of any call fits, with all its names and
/// metadata, and so does every error.
pub const LEAST_MESSAGE_BYTES: usize = 4096;
/// An endpoint's text, in bytes.
pub const ENDPOINT_BYTES: usize = 4096;
/// What a node publishes of itself (hello, admit, descriptor), in bytes.
pub const DESCRIPTOR_BYTES: usize = 1 << 20;
/// Channels that a side lists in what it publishes of itself.
pub const DESCRIPTOR_CHANNELS: usize = 4096;
/// Types of Spots that a node lists in what it publishes of itself.
pub const OBJECT_TYPES: usize = 1024;
/// Operations that a side lists in what it publishes of itself.
pub const DESCRIPTOR_OPERATIONS: usize = 16_384;
/// Bytes a link holds per peer and direction, in the profile `Balanced`.
pub const LINK_BUDGET_BYTES: usize = 4 << 20;
/// Bytes that one lane of a link reads ahead of what was handed on, beside one record, where no other measure is set.
pub const RECEIVE_BUDGET_BYTES: usize = 64 << 10;
/// The smallest such measure: less would make many reads of one record.
pub const MIN_RECEIVE_BUDGET_BYTES: usize = 4 << 10;
/// Records that one receive rotation hands on.
pub const ROTATION_RECORDS: usize = 64;
/// Bytes after which a receive rotation ends.
pub const ROTATION_BYTES: usize = 1 << 20;
/// Time after which a receive rotation ends.
pub const ROTATION_TIME: Duration = Duration::from_millis(1);
/// Bytes a link writer joins into one ZeroMQ message.
pub const COALESCE_BYTES: usize = 64 << 10;
/// Records of this many bytes and more travel alone, without a copy.
pub const ALONE_BYTES: usize = 16 << 10;
/// Frames of one ZeroMQ message.
pub const MESSAGE_FRAMES: usize = 64;
/// Records that a publisher holds for one subscriber: what ZeroMQ libraries have as their high-water mark.
pub const PIPE_RECORDS: usize = 1000;
/// Topics that a publisher keeps of one subscriber.
pub const SUBSCRIPTIONS: usize = 1024;
/// A publish that waits for room at a subscriber, where no send timeout is set.
pub const PUBLISH_TIMEOUT: Duration = Duration::from_secs(1);
/// A ZMTP command, in bytes.
pub const COMMAND_BYTES: usize = 4096;
/// From the first byte of a connection to its end of handshake, service admission included.
pub const HANDSHAKE_TIME: Duration = Duration::from_secs(2);
/// Connections one listener holds.
pub const LISTENER_CONNECTIONS: usize = 4096;
/// Between two probes on a link.
pub const PROBE_INTERVAL: Duration = Duration::from_secs(5);
/// Without an acknowledged probe for this long, a link is dead.
pub const PROBE_LIMIT: Duration = Duration::from_secs(15);
/// A request where no timeout is set.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a call waits for the link of a known target.
pub const ROUTE_READY_TIME: Duration = Duration::from_secs(1);
/// A send awaited inside a turn that holds its gate.
pub const GATED_SEND_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a host may be full without a job starting before it is said to stall.
pub const STALL_TIME: Duration = Duration::from_secs(5);
/// From the start of a shutdown to the forced stop.
pub const DRAIN_TIME: Duration = Duration::from_secs(30);
/// The longest timeout that can be set, in milliseconds.
pub const TIMEOUT_MILLIS: u64 = i32::MAX as u64;
/// Jobs of one Node or Channel queue that may run at once.
pub const DISPATCH_LIMIT: usize = 256;
/// Workers of one host.
pub const WORKERS: usize = 4096;
/// Jobs a worker runs for one owner before it looks at the next.
pub const OWNER_JOBS: u32 = 64;
/// Jobs a worker runs, of all owners, before it lets the rest of its runtime on; or as many as the time below allows. Each
/// time costs a look at the sockets, a system call.
pub const WORKER_JOBS: u32 = 256;
/// Time a worker gives one owner before it looks at the next.
pub const OWNER_TIME: Duration = Duration::from_millis(1);
/// Lifecycle turns in a row of one gate after which a waiting application turn goes first.
pub const LIFECYCLE_RUN: u8 = 16;
/// Lifecycle work that one owner holds.
pub const LIFECYCLE_JOBS: usize = 256;
/// Records that one unit holds while it moves, on either side.
pub const HOLD_RECORDS: usize = 1024;
/// Bytes of records that one unit holds while it moves, on either side.
pub const HOLD_BYTES: usize = 16 << 20;
/// Joins that one handler may defer.
pub const DEFERRED_JOINS: usize = 64;
/// The request of one deferred Join, and the reply of one between nodes, in bytes.
pub const DEFERRED_BYTES: usize = 1 << 20;
/// The requests of all Joins that one handler defers, in bytes.
pub const DEFERRED_ALL_BYTES: usize = 8 << 20;
/// A deferred Join where no timeout is set.
pub const DEFERRED_TIMEOUT: Duration = Duration::from_secs(5);
/// CPU work that waits for a thread of the pool.
pub const CPU_QUEUE: usize = 1024;
/// How long a thread of the CPU pool stays without work.
pub const CPU_IDLE: Duration = Duration::from_secs(30);
/// IO work under way at once.
pub const IO_WORK: usize = 4096;
/// How long a Spot that was found is looked up no more, at most.
pub const ROUTE_CACHE_AGE: Duration = Duration::from_secs(15);
/// Creations and closes of Spots that a node has under way for each node that asks, itself included. More are refused.
pub const CONTROLS: usize = 1024;
/// Spots that a host remembers having found.
pub const ROUTE_CACHE_ROUTES: usize = 1 << 18;
/// How long a Spot may take that its first message makes, where no deadline is told.
pub const ACTIVATION_TIME: Duration = Duration::from_secs(30);
/// How long a Spot may take to close, other than by the stop of its host.
pub const CLOSING_TIME: Duration = Duration::from_secs(30);
/// Spots that one look for idle ones examines.
pub const EVICTION_SCAN: usize = 64;
/// Weight of a channel membership where none is set.
pub const DEFAULT_WEIGHT: u16 = 100;
/// The greatest weight.
pub const MAX_WEIGHT: u16 = 10_000;
/// Peers without a link that one scope remembers; a lost one beyond takes the place of the one lost first.
pub const LOST_PEERS: usize = 1024;
/// Steps after which the search for a selection period gives up.
pub const SELECT_STEPS: usize = 65_536;
/// Time after which the search for a selection period gives up.
pub const SELECT_TIME: Duration = Duration::from_millis(2);
/// A key of a store, or a prefix to scan by, in bytes.
pub const STORE_KEY_BYTES: usize = 1024;
/// A value of a store, in bytes.
pub const STORE_VALUE_BYTES: usize = 1 << 20;
/// The longest that a store may be told to keep something before it expires.
pub const STORE_RETENTION: Duration = Duration::from_secs(366 * 24 * 60 * 60);
/// Distinct keys of one conditional batch.
pub const BATCH_KEYS: usize = 2048;
/// Keys and values of one conditional batch, in bytes.
pub const BATCH_BYTES: usize = 4 << 20;
/// Keys of one read.
pub const READ_KEYS: usize = 1000;
/// Entries of one page of a scan.
pub const PAGE_ENTRIES: usize = 1000;
/// The least time between two pages of leases that a host looks through for hosts that nobody else counts out.
pub const STRAY_INTERVAL: Duration = Duration::from_secs(60);
/// The time that each lease of such a page adds before the next: however many hosts there are, together they read
/// about as many leases in it as there are on a page.
pub const STRAY_INTERVAL_PER_LEASE: Duration = Duration::from_secs(1);
/// Leases that a host watches at once because they stood still between two such pages.
pub const STRAYS: usize = 256;
/// Keys and values of one page of a scan, in bytes.
pub const PAGE_BYTES: usize = 4 << 20;
/// What a scan goes on from, in bytes.
pub const CURSOR_BYTES: usize = 4096;
/// A blob with its envelope, in bytes.
pub const BLOB_BYTES: usize = (64 << 20) + 23;
/// The name of a blob, in bytes.
pub const BLOB_REFERENCE_BYTES: usize = 4096;
/// How long a blob stays that nothing points at; while something does, it is renewed when half of that is left.
pub const BLOB_RETENTION: Duration = Duration::from_secs(24 * 60 * 60);
/// How often a blob is written whose outcome is unknown, and looked for that is missing.
pub const BLOB_TRIES: u32 = 5;
/// Bytes of a blob that are summed up without a pause.
pub const BLOB_PIECE_BYTES: usize = 256 << 10;
/// A request to create a Spot, encoded, in bytes.
pub const CREATE_BYTES: usize = 1 << 20;
/// How long an operation of a store waits for its turn; below the time after which a renewal of a lease is given up.
pub const STORE_TIMEOUT: Duration = Duration::from_secs(2);
/// What a record of a Spot holds of the request or first message by itself, in bytes; it points at more.
pub const INBOX_BYTES: usize = 64 << 10;
/// How long it can be read how a creation ended, after the deadline of its caller.
pub const TERMINAL_TIME: Duration = Duration::from_secs(300);
/// Changes of Spots that wait for the store, of one host; whoever wants more waits until one is done.
pub const AUTHORITY_CHANGES: usize = 1024;
/// Changes of Spots that one batch makes.
pub const AUTHORITY_BATCH: usize = 64;
/// What they bring into it, about, in bytes: a writer should not be held long.
pub const AUTHORITY_BATCH_BYTES: usize = 1 << 20;
/// What is removed at once of what a dead host has left.
pub const SWEPT_AT_ONCE: usize = 256;
