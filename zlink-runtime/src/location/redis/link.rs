//! The way to the server: one connection, driven by a thread of its own, and how its failures are told. It must not
//! know what is asked.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, ErrorKind, FromRedisValue, RedisError, ScriptInvocation};
use tokio::runtime::{Builder, Handle};
use tokio::sync::{Mutex, oneshot};
use tokio::time::{Instant, timeout_at};

use crate::location::source::shown;
use crate::location::{OpenError, StoreError};

/// What a server must be set to: what it has answered must still be there when it is short of memory, or starts again.
const REQUIRED: [(&str, &str, &str); 2] = [
    (
        "maxmemory_policy",
        "noeviction",
        "it may evict records when it is short of memory; set `maxmemory-policy noeviction`",
    ),
    (
        "aof_enabled",
        "1",
        "it forgets what it answered when it restarts; set `appendonly yes`",
    ),
];

/// Longer than any program runs.
const NEVER: Duration = Duration::from_secs(30 * 365 * 86_400);

/// A handle of the thread; the last of them ends it.
pub(super) struct Link {
    server: Arc<Server>,
    runtime: Handle,
    _end: oneshot::Sender<()>,
}

/// What an operation runs on, within the thread.
pub(super) struct Server {
    client: Client,
    timeout: Duration,
    slot: Mutex<Slot>,
}

#[derive(Default)]
struct Slot {
    connection: Option<MultiplexedConnection>,
    /// Which connection it is: one that failed is forgotten once.
    number: u64,
}

impl Link {
    /// Connects once, and checks what the server is set to.
    pub(super) async fn open(address: &str, timeout: Duration) -> Result<Self, OpenError> {
        let refuse = |problem: String| OpenError::new(&shown(address), problem);
        let client = Client::open(address).map_err(|error| refuse(told(&error)))?;
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| refuse(format!("no runtime for it: {error}")))?;
        let handle = runtime.handle().clone();
        let (end, ended) = oneshot::channel::<()>();
        // On a thread of its own the connection lives on while an application blocks the runtime it was opened in.
        let thread = std::thread::Builder::new().name("zlink-store-redis".to_owned());
        thread
            .spawn(move || drop(runtime.block_on(ended)))
            .map_err(|error| refuse(format!("no thread for it: {error}")))?;
        let server = Server {
            client,
            timeout,
            slot: Mutex::default(),
        };
        let link = Self {
            server: Arc::new(server),
            runtime: handle,
            _end: end,
        };
        link.run(|server| async move {
            let deadline = later(Instant::now(), server.timeout);
            server.connection(deadline).await.map(drop)
        })
        .await
        .map_err(|error| refuse(error.to_string()))?;
        Ok(link)
    }

    /// Runs an operation in the thread. Where the future is dropped, the operation goes on.
    pub(super) async fn run<T, F>(&self, act: impl FnOnce(Arc<Server>) -> F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let done = self.runtime.spawn(act(Arc::clone(&self.server))).await;
        done.unwrap_or_else(|error| Err(StoreError::Unknown(format!("the operation was broken off: {error}"))))
    }
}

impl Server {
    /// One script, within the timeout, which covers the wait for a connection; what it carries may take `longer`.
    /// `changes`: whether nobody knows what came of it where there is no answer.
    pub(super) async fn call<T: FromRedisValue>(
        &self,
        script: &ScriptInvocation<'_>,
        changes: bool,
        longer: Duration,
    ) -> Result<T, StoreError> {
        let deadline = later(Instant::now(), self.timeout);
        let (number, mut connection) = self.connection(deadline).await?;
        let deadline = later(deadline, longer);
        let lost = |text: String, error: fn(String) -> StoreError| match changes {
            true => StoreError::Unknown(text),
            false => error(text),
        };
        match timeout_at(deadline, script.invoke_async(&mut connection)).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) if is_answer(&error) => Err(StoreError::Unavailable(told(&error))),
            Ok(Err(error)) => {
                self.forget(number).await;
                Err(lost(told(&error), StoreError::Unavailable))
            }
            Err(_) => {
                // It may be cut off without a sign: the next operation tries another connection.
                self.forget(number).await;
                let text = format!(
                    "the server did not answer within {:?}",
                    self.timeout.saturating_add(longer)
                );
                Err(lost(text, StoreError::DeadlineExceeded))
            }
        }
    }

    async fn connection(&self, deadline: Instant) -> Result<(u64, MultiplexedConnection), StoreError> {
        match timeout_at(deadline, self.connect()).await {
            Ok(connected) => connected,
            Err(_) => Err(StoreError::DeadlineExceeded(format!(
                "no connection to the server within {:?}",
                self.timeout
            ))),
        }
    }

    async fn connect(&self) -> Result<(u64, MultiplexedConnection), StoreError> {
        let mut slot = self.slot.lock().await;
        if let Some(connection) = &slot.connection {
            return Ok((slot.number, connection.clone()));
        }
        // How long anything waits is decided here, not in the client.
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(None)
            .set_response_timeout(None);
        let connecting = self.client.get_multiplexed_async_connection_with_config(&config);
        let mut connection = connecting.await.map_err(unavailable)?;
        check(&mut connection).await?;
        slot.number += 1;
        slot.connection = Some(connection.clone());
        Ok((slot.number, connection))
    }

    /// Lets the next operation connect anew. Those under way on the same connection are left to it.
    async fn forget(&self, number: u64) {
        let mut slot = self.slot.lock().await;
        if slot.number == number {
            slot.connection = None;
        }
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The address may hold a password.
        write!(f, "{}", self.server.client.get_connection_info().addr())
    }
}

/// That much later, or so late that nobody waits for it.
fn later(since: Instant, time: Duration) -> Instant {
    since.checked_add(time).unwrap_or_else(|| since + NEVER)
}

async fn check(connection: &mut MultiplexedConnection) -> Result<(), StoreError> {
    for section in ["memory", "persistence"] {
        let answer = redis::cmd("INFO").arg(section).query_async(connection).await;
        let text: String = answer.map_err(unavailable)?;
        for (name, wanted, problem) in REQUIRED {
            let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            if value.is_some_and(|value| value.trim() != wanted) {
                return Err(StoreError::Unavailable(format!(
                    "the server cannot be a store: {problem}"
                )));
            }
        }
    }
    Ok(())
}

/// Whether the server itself refused: then nothing was done, and the connection is good. One that has become a replica
/// is left, since the name may lead to another by now.
fn is_answer(error: &RedisError) -> bool {
    let refused = error.code().is_some() && !error.is_io_error() && !error.is_unrecoverable_error();
    refused && error.code() != Some("READONLY")
}

fn told(error: &RedisError) -> String {
    match error.kind() {
        // Of an error within a script some versions of the server make one of another code.
        _ if error.to_string().contains("WRONGTYPE") => format!(
            "a key of this namespace is in use for something else; take another namespace, or delete it: {error}"
        ),
        ErrorKind::InvalidClientConfig => format!("is no address of a Redis server: {error}"),
        _ => error.to_string(),
    }
}

fn unavailable(error: RedisError) -> StoreError {
    StoreError::Unavailable(told(&error))
}
