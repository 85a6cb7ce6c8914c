//! Changes of services and metadata: an older client at a newer server, and the reverse, in one mesh each.
//!
//! It must not know which rules there are.

use std::collections::BTreeMap;
use std::future::IntoFuture;
use std::time::Duration;

use zlink_runtime::message::time::Timestamp;
use zlink_runtime::prelude::*;
use zlink_runtime::testing::Cluster;

use crate::{after, before};

/// How a call ended: with the word of the reply, or with a kind of error; and whether that was at once.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) answer: Result<String, ErrorKind>,
    pub(crate) took: Duration,
}

/// All calls of a change.
pub(crate) type Endings = BTreeMap<&'static str, Vec<Ended>>;

/// Answers with the name of the method that was called.
#[derive(Clone, Copy)]
pub(crate) struct Desk;

macro_rules! desk {
    ($($side:ident::$handler:ident { $($method:ident($request:ident) -> $reply:ident $({ $field:ident: $value:expr })?;)* })*) => {
        $(impl $side::$handler for Desk {
            $(async fn $method(&self, _: &ChannelContext<'_>, _: $side::$request) -> Result<$side::$reply, HandlerError> {
                Ok(desk!(@reply $side::$reply, $method $(, $field: $value)?))
            })*
        })*
    };
    (@reply $side:ident::$reply:ident, $method:ident) => { $side::$reply { word: stringify!($method).to_owned() } };
    (@reply $side:ident::$reply:ident, $method:ident, $field:ident: $value:expr) => { $side::$reply { $field: $value } };
}

desk! {
    before::MethodAddedHandler { keep(MethodAdded) -> MethodAdded; }
    after::MethodAddedHandler { keep(MethodAdded) -> MethodAdded; more(MethodAdded) -> MethodAdded; }
    before::MethodRemovedHandler { keep(MethodRemoved) -> MethodRemoved; gone(MethodRemoved) -> MethodRemoved; }
    after::MethodRemovedHandler { keep(MethodRemoved) -> MethodRemoved; }
    before::MethodRenamedHandler { ask(MethodRenamed) -> MethodRenamed; }
    after::MethodRenamedHandler { query(MethodRenamed) -> MethodRenamed; }
    before::MethodRenamedOnTheWireHandler { ask(MethodRenamedOnTheWire) -> MethodRenamedOnTheWire; }
    after::MethodRenamedOnTheWireHandler { query(MethodRenamedOnTheWire) -> MethodRenamedOnTheWire; }
    before::MethodsSwappedHandler { a(MethodsSwapped) -> MethodsSwapped; b(MethodsSwapped) -> MethodsSwapped; }
    after::MethodsSwappedHandler { a(MethodsSwapped) -> MethodsSwapped; b(MethodsSwapped) -> MethodsSwapped; }
    before::RequestBecameSendHandler { tell(RequestBecameSend) -> RequestBecameSend; }
    before::RequestIsAnotherHandler { ask(RequestIsAnother) -> RequestIsAnother; }
    after::RequestIsAnotherHandler { ask(RequestIsAnotherNumber) -> RequestIsAnother; }
    before::ReplyIsAnotherHandler { ask(ReplyIsAnother) -> ReplyIsAnother; }
    after::ReplyIsAnotherHandler { ask(ReplyIsAnother) -> ReplyIsAnotherNumber { number: vec![] }; }
    before::RequestOfAnotherNameHandler { ask(RequestOfOneName) -> RequestOfOneName; }
    after::RequestOfAnotherNameHandler { ask(RequestOfAnotherName) -> RequestOfAnotherName; }
    before::ServiceRenamedHandler { ask(ServiceRenamed) -> ServiceRenamed; }
    after::ServiceOfAnotherNameHandler { ask(ServiceRenamed) -> ServiceRenamed; }
    before::TargetChangedHandler { ask(TargetChanged) -> TargetChanged; }
    before::TimeoutChangedHandler { ask(TimeoutChanged) -> TimeoutChanged; }
    after::TimeoutChangedHandler { ask(TimeoutChanged) -> TimeoutChanged; }
    after::WithKeyRemovedHandler { ask(KeyRemoved) -> KeyRemoved; }
}

impl after::RequestBecameSendHandler for Desk {
    async fn tell(&self, _: &ChannelContext<'_>, _: after::RequestBecameSend) -> Result<(), HandlerError> {
        Ok(())
    }
}

impl after::TargetChangedHandler for Desk {
    async fn ask(&self, _: &NodeContext<'_>, _: after::TargetChanged) -> Result<after::TargetChanged, HandlerError> {
        Ok(after::TargetChanged { word: "ask".to_owned() })
    }
}

/// Handlers that read a key answer with what it says.
macro_rules! reads {
    ($($side:ident::$handler:ident: $message:ident, $key:ident;)*) => {
        $(impl $side::$handler for Desk {
            async fn ask(&self, context: &ChannelContext<'_>, _: $side::$message) -> Result<$side::$message, HandlerError> {
                let read = context.metadata().read($side::$key)?;
                let word = if read.is_some() { "ask" } else { "nothing" };
                Ok($side::$message { word: word.to_owned() })
            }
        })*
    };
}

reads! {
    before::WithKeyRetypedHandler: KeyRetyped, KEY_RETYPED;
    after::WithKeyRetypedHandler: KeyRetyped, KEY_RETYPED;
    before::WithKeyRemovedHandler: KeyRemoved, KEY_REMOVED;
    before::WithKeyNamedTimeHandler: KeyNamedTime, KEY_NAMED_TIME;
    after::WithKeyNamedTimeHandler: KeyNamedTime, KEY_NAMED_TIME;
}

/// The servers of one version as a node, and the channels of the other as its client.
macro_rules! node {
    ($mesh:expr, $($server:path),* $(,)?) => { $mesh$(.serve($server(Desk)))* };
}

/// Ends a call, and keeps how.
pub(crate) async fn end<R>(call: impl IntoFuture<Output = Result<R, CallError>>, word: impl Fn(R) -> String) -> Ended {
    let start = tokio::time::Instant::now();
    let answer = call
        .await
        .map(word)
        .map_err(|error| error.kind().expect("the argument is legal"));
    Ended {
        answer,
        took: start.elapsed(),
    }
}

fn mesh() -> MeshName {
    MeshName::new("shop").expect("a name")
}

/// [`older_at_newer`] and [`newer_at_older`], from within a test that runs in real time.
pub(crate) fn both_in_virtual_time() -> Result<(Endings, Endings), Box<dyn std::error::Error>> {
    let both = std::thread::spawn(|| {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().start_paused(true).build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let both = async { Ok::<_, Box<dyn std::error::Error>>((older_at_newer().await?, newer_at_older().await?)) };
        runtime.block_on(both).map_err(|error| error.to_string())
    });
    Ok(both.join().map_err(|_| "it panicked")??)
}

/// An older client at a newer server.
pub(crate) async fn older_at_newer() -> Result<Endings, Box<dyn std::error::Error>> {
    let cluster = Cluster::new(1);
    cluster.node("server", |host| {
        host.mesh("shop", |mesh| {
            let mesh = mesh
                .rid("server")
                .listen("tcp://server:1")
                .serve_node(after::target_changed_server(Desk));
            node!(
                mesh,
                after::method_added_server,
                after::method_removed_server,
                after::method_renamed_server,
                after::method_renamed_on_the_wire_server,
                after::methods_swapped_server,
                after::request_became_send_server,
                after::request_is_another_server,
                after::reply_is_another_server,
                after::request_of_another_name_server,
                after::service_of_another_name_server,
                after::timeout_changed_server,
                after::with_key_retyped_server,
                after::with_key_removed_server,
                after::with_key_named_time_server,
            )
        })
    });
    cluster.node("client", |host| {
        host.mesh("shop", |mesh| {
            let channels = [
                before::METHOD_ADDED,
                before::METHOD_REMOVED,
                before::METHOD_RENAMED,
                before::METHOD_RENAMED_ON_THE_WIRE,
                before::METHODS_SWAPPED,
                before::REQUEST_BECAME_SEND,
                before::REQUEST_IS_ANOTHER,
                before::REPLY_IS_ANOTHER,
                before::REQUEST_OF_ANOTHER_NAME,
                before::SERVICE_RENAMED,
                before::TARGET_CHANGED,
                before::TIMEOUT_CHANGED,
                before::WITH_KEY_RETYPED,
                before::WITH_KEY_REMOVED,
                before::WITH_KEY_NAMED_TIME,
            ];
            let mesh = mesh.rid("client").listen("tcp://client:1").connect("tcp://server:1");
            channels.into_iter().fold(mesh, |mesh, channel| mesh.client(channel))
        })
    });
    cluster.start_all().await?;
    let host = cluster.host("client");
    host.mesh("shop")?
        .ready(before::METHOD_ADDED, 1, Duration::from_secs(5))
        .await?;

    let mut endings = Endings::new();
    /// A request of the empty message, which answers with a word.
    macro_rules! ask {
        ($($name:literal: $client:ident.$method:ident($message:ident) $(, $key:ident = $value:expr)?;)*) => {
            $({
                let request = before::$message::default();
                let call = before::$client(&host).$method(request)$(.metadata(before::$key, $value))?;
                endings.entry($name).or_default().push(end(call, |reply| reply.word).await);
            })*
        };
    }
    ask! {
        "method_added": method_added_client.keep(MethodAdded);
        "method_removed": method_removed_client.keep(MethodRemoved);
        "method_removed": method_removed_client.gone(MethodRemoved);
        "method_renamed": method_renamed_client.ask(MethodRenamed);
        "method_renamed_on_the_wire": method_renamed_on_the_wire_client.ask(MethodRenamedOnTheWire);
        "methods_swapped": methods_swapped_client.a(MethodsSwapped);
        "request_became_send": request_became_send_client.tell(RequestBecameSend);
        "request_is_another": request_is_another_client.ask(RequestIsAnother);
        "reply_is_another": reply_is_another_client.ask(ReplyIsAnother);
        "request_of_another_name": request_of_another_name_client.ask(RequestOfOneName);
        "service_renamed": service_renamed_client.ask(ServiceRenamed);
        "target_changed": target_changed_client.ask(TargetChanged);
        "timeout_changed": timeout_changed_client.ask(TimeoutChanged);
        "key_retyped": with_key_retyped_client.ask(KeyRetyped), KEY_RETYPED = "a text";
        "key_removed": with_key_removed_client.ask(KeyRemoved), KEY_REMOVED = "a text";
        "key_named_time": with_key_named_time_client.ask(KeyNamedTime), KEY_NAMED_TIME = -7;
    }
    cluster.shutdown().await?;
    crate::spots::older_at_newer(&mut endings).await?;
    Ok(endings)
}

/// A newer client at an older server.
pub(crate) async fn newer_at_older() -> Result<Endings, Box<dyn std::error::Error>> {
    let cluster = Cluster::new(2);
    cluster.node("server", |host| {
        host.mesh("shop", |mesh| {
            let mesh = mesh.rid("server").listen("tcp://server:1");
            node!(
                mesh,
                before::method_added_server,
                before::method_removed_server,
                before::method_renamed_server,
                before::method_renamed_on_the_wire_server,
                before::methods_swapped_server,
                before::request_became_send_server,
                before::request_is_another_server,
                before::reply_is_another_server,
                before::request_of_another_name_server,
                before::service_renamed_server,
                before::target_changed_server,
                before::timeout_changed_server,
                before::with_key_retyped_server,
                before::with_key_removed_server,
                before::with_key_named_time_server,
            )
        })
    });
    cluster.node("client", |host| {
        host.mesh("shop", |mesh| {
            let channels = [
                after::METHOD_ADDED,
                after::METHOD_REMOVED,
                after::METHOD_RENAMED,
                after::METHOD_RENAMED_ON_THE_WIRE,
                after::METHODS_SWAPPED,
                after::REQUEST_BECAME_SEND,
                after::REQUEST_IS_ANOTHER,
                after::REPLY_IS_ANOTHER,
                after::REQUEST_OF_ANOTHER_NAME,
                after::SERVICE_OF_ANOTHER_NAME,
                after::TIMEOUT_CHANGED,
                after::WITH_KEY_RETYPED,
                after::WITH_KEY_REMOVED,
                after::WITH_KEY_NAMED_TIME,
            ];
            let mesh = mesh.rid("client").listen("tcp://client:1").connect("tcp://server:1");
            channels.into_iter().fold(mesh, |mesh, channel| mesh.client(channel))
        })
    });
    cluster.start_all().await?;
    let host = cluster.host("client");
    host.mesh("shop")?
        .ready(after::METHOD_ADDED, 1, Duration::from_secs(5))
        .await?;

    let mut endings = Endings::new();
    macro_rules! ask {
        ($($name:literal: $client:ident.$method:ident($message:ident) $(, $key:ident = $value:expr)?;)*) => {
            $({
                let request = after::$message::default();
                let call = after::$client(&host).$method(request)$(.metadata(after::$key, $value))?;
                endings.entry($name).or_default().push(end(call, |reply| reply.word).await);
            })*
        };
    }
    ask! {
        "method_added": method_added_client.keep(MethodAdded);
        // Only a newer program can want it: that it cannot have it yet is no break of what there was.
        "new_method_at_an_older_server": method_added_client.more(MethodAdded);
        "method_removed": method_removed_client.keep(MethodRemoved);
        "method_renamed": method_renamed_client.query(MethodRenamed);
        "method_renamed_on_the_wire": method_renamed_on_the_wire_client.query(MethodRenamedOnTheWire);
        "methods_swapped": methods_swapped_client.a(MethodsSwapped);
        "request_is_another": request_is_another_client.ask(RequestIsAnotherNumber);
        "request_of_another_name": request_of_another_name_client.ask(RequestOfAnotherName);
        "service_renamed": service_of_another_name_client.ask(ServiceRenamed);
        "timeout_changed": timeout_changed_client.ask(TimeoutChanged);
        "key_retyped": with_key_retyped_client.ask(KeyRetyped), KEY_RETYPED = 7;
        "key_removed": with_key_removed_client.ask(KeyRemoved);
        "key_named_time": with_key_named_time_client.ask(KeyNamedTime), KEY_NAMED_TIME = Timestamp::from_micros(-7);
    }
    let reply = after::reply_is_another_client(&host).ask(after::ReplyIsAnother { word: "x".to_owned() });
    let reply = end(reply, |reply| format!("{:?}", reply.number)).await;
    endings.entry("reply_is_another").or_default().push(reply);
    let server = Rid::new("server").expect("a RID");
    let call = after::target_changed_client(&host, &mesh(), server).ask(after::TargetChanged::default());
    endings
        .entry("target_changed")
        .or_default()
        .push(end(call, |reply| reply.word).await);

    // A message of one way has nobody to tell: it is dropped and counted at the server.
    let told = after::request_became_send_client(&host).tell(after::RequestBecameSend::default());
    told.await?;
    let server = cluster.host("server");
    let server = server.mesh("shop")?;
    let dropped = || server.status().channel_drops.no_handler == 1;
    cluster
        .until("the message is dropped and counted", Duration::from_secs(5), dropped)
        .await;
    cluster.shutdown().await?;
    crate::spots::newer_at_older(&mut endings).await?;
    Ok(endings)
}
