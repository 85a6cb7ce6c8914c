//! Words of Rust, of its library and of the generator as names: that all of it compiles is shown by now, and here it runs.

use std::collections::BTreeMap;
use std::fmt::Debug;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use zlink_generated::obstacles::{self as words, ObstaclesHandler_2, ObstaclesHandler_3};
use zlink_runtime::PeerState;
use zlink_runtime::id::{ActorId, ActorRef, MeshName, ObjectGeneration, Rid, SpotId};
use zlink_runtime::message::codec::{Message, decode, encode};
use zlink_runtime::prelude::*;
use zlink_runtime::testing::Cluster;

fn either() -> words::Either {
    words::Either::Result(words::Result::default())
}

fn option() -> words::Option {
    words::Option {
        some: None,
        none: None,
        either: Box::new(either()),
    }
}

fn string() -> words::String {
    words::String {
        id: SpotId::from_static("here"),
    }
}

fn actor(number: u8) -> ActorRef {
    ActorRef {
        id: ActorId::from_static("there"),
        generation: ObjectGeneration::new(u64::from(number)).expect("it is not 0"),
        mesh: MeshName::from_static("words"),
        node: Rid::new([number]).expect("a byte"),
    }
}

fn goes_both_ways<T: Message + PartialEq + Debug>(value: &T) {
    let bytes = encode(value, <[u8]>::to_vec).expect("the value is legal");
    assert_eq!(&decode::<T>(&bytes).expect("what was encoded"), value);
}

#[test]
fn messages_of_every_name_go_through_their_codecs() {
    macro_rules! all {
        ($($message:ident)*) => { $(goes_both_ways(&words::$message::default());)* };
    }
    all! {
        As Break Const Continue Crate Else Enum Extern False Fn_2 For If Impl In Let Loop Match Mod Move Mut Pub Ref
        Return Self_2 Self_ Static Struct Super Trait True Type Unsafe Use Where While Async Await Dyn Abstract Become
        Box_2 Do Final Macro Override Priv Typeof Unsized Virtual Yield Try Gen Union Raw Safe Auto Default_2
        MacroRules Result Box Ok Err Some None Default Clone Copy Debug PartialEq Eq Hash Send Sync Sized Drop Fn
        Future Arc Into From Iterator Message Value Inline Field Writer Reader Table At Offset Method Caller Uuid
        BTreeMap Rt Std Core Alloc ZlinkRuntime Writer_2 Table_2 At_2 F0 F1 Member Tag Number Value_2 Read Write
        ToBytes FromBytes Handler Turn Context Request Message_2 Route Caller_2 Channel Mesh Rid Name_2 Name FooBar
        FooBar_5 FooBar_4 FooBar_2 FooBar2 FooBar_3 X_2 X Unknown BillingHandler ObstaclesHandler ObstaclesClient
    }
    goes_both_ways(&option());
    goes_both_ways(&string());
    goes_both_ways(&words::Vec {
        inner: string(),
        number: 1,
    });
    goes_both_ways(&zlink_generated::crate_::Result {
        value: "crate".to_owned(),
    });
    let value = zlink_generated::core::Default::Clone;
    goes_both_ways(&zlink_generated::core::Option { value });
}

#[test]
fn fields_of_every_name_keep_what_they_are_given() {
    let mut value = words::Result::default();
    let mut number = 0_u8;
    macro_rules! set {
        ($make:expr; $($field:ident)*) => { $(
            number += 1;
            value.$field = ($make)(number);
        )* };
    }
    set! { |n| n;
        r#as r#let r#trait r#final default debug message_2 std read name
    }
    set! { |n| format!("text {n}");
        r#break r#loop r#true r#macro macro_rules partial_eq value_2 core write name_2
    }
    set! { |n| Some(i32::from(n));
        r#const r#match r#type r#override result eq inline alloc to_bytes foo_bar_4
    }
    set! { |n| vec![format!("item {n}")];
        r#continue r#mod r#unsafe r#priv option hash field zlink_runtime from_bytes foo_bar
    }
    set! { |_| Some(Box::new(option()));
        crate_ r#move r#use r#typeof string send writer_2 writer handler foo_bar_6
    }
    set! { |_| Some(Box::new(either()));
        r#else r#mut r#where r#unsized vec sync reader table turn foo_bar_3
    }
    set! { |n| BTreeMap::from([(format!("key {n}"), words::Self_ {})]);
        r#enum r#pub r#while r#virtual box_2 sized table_2 at context foo_bar_2
    }
    set! { |n| words::Words::from_wire(i16::from(n % 50));
        r#extern r#ref r#async r#yield ok drop at_2 f0 request foo_bar_5
    }
    set! { |_| words::Layout::default();
        r#false r#return r#await r#try err fn_2 offset f1 message x
    }
    set! { |n| vec![n, n];
        r#fn self_ r#dyn r#gen some future method member route x_2
    }
    set! { |n| Some(zlink_generated::crate_::Result { value: format!("result {n}") });
        r#for self_2 r#abstract union none arc caller_2 tag caller
    }
    set! { |_| Some(zlink_generated::core::Either {});
        r#if r#static r#become raw default_2 into uuid bytes channel
    }
    set! { |n| Some(n % 2 == 0);
        r#impl r#struct r#box safe clone from b_tree_map number mesh
    }
    set! { |n| Some(actor(n));
        r#in super_ r#do auto copy iterator rt value rid
    }
    assert_eq!(number, 136);
    goes_both_ways(&value);
}

/// Tells which method was called.
struct Desk(UnboundedSender<&'static str>);

/// A service whose methods are all of one of four shapes, and a client that calls each.
macro_rules! desk {
    ($($input:ty: $message:expr => $output:ty: $reply:expr, $($ask:ident)*;)* { $($sent:ty: $send:expr, $($tell:ident)*;)* }) => {
        impl ObstaclesHandler_2 for Desk {
            $($(async fn $ask(&self, _: &ChannelContext<'_>, _: $input) -> Result<$output, HandlerError> {
                self.0.send(stringify!($ask)).map_err(|gone| HandlerError::new(gone.to_string()))?;
                Ok($reply)
            })*)*
            $($(async fn $tell(&self, _: &ChannelContext<'_>, _: $sent) -> Result<(), HandlerError> {
                self.0.send(stringify!($tell)).map_err(|gone| HandlerError::new(gone.to_string()))
            })*)*
        }

        /// Calls every method; each call must come where it is named to. Returns how many there are.
        async fn call_all(host: &Host, came: &mut UnboundedReceiver<&'static str>) -> Result<usize, CallError> {
            let client = words::client(host);
            let mut calls = 0;
            $($(
                assert_eq!(client.$ask($message).await?, $reply);
                assert_eq!(came.recv().await, Some(stringify!($ask)));
                calls += 1;
            )*)*
            $($(
                client.$tell($send).await?;
                assert_eq!(came.recv().await, Some(stringify!($tell)));
                calls += 1;
            )*)*
            Ok(calls)
        }
    };
}

desk! {
    words::Result: words::Result::default() => words::Option: option(),
    r#as crate_ r#false r#impl r#match r#pub self_2 r#trait r#use r#await r#box r#override r#virtual union default
    string err clone_2 eq sized arc message_2 writer_2 offset b_tree_map alloc at tag read handler message mesh
    foo_bar_4 foo_bar_2 on_2 unwrap;
    words::Self_: words::Self_ {} => zlink_generated::crate_::Result: zlink_generated::crate_::Result::default(),
    r#const r#enum r#for r#let r#move r#return r#struct r#type r#while r#abstract r#final r#typeof r#try safe result
    box_2 none debug send fn_2 from inline table_2 caller_2 std writer f1 number to_bytes context caller name foo_bar_6
    x into_2;
    {
        words::String: string(),
        r#break r#else r#fn r#in r#mod r#ref r#static r#true r#where r#dyn r#do r#priv r#yield raw macro_rules vec some
        copy hash drop_2 into_3 value_2 reader method rt zlink_runtime f0 bytes write turn route rid foo_bar foo_bar_5
        clone drop;
        zlink_generated::core::Option: zlink_generated::core::Option::default(),
        r#continue r#extern r#if r#loop r#mut self_ super_ r#unsafe r#async r#become r#macro r#unsized r#gen auto
        option ok default_2 partial_eq sync future iterator field at_2 uuid core table member value from_bytes request
        channel name_2 foo_bar_3 x_2 poll;
    }
}

#[tokio::test(start_paused = true)]
async fn methods_of_every_name_call_what_they_are_named_after() -> Result<(), Box<dyn std::error::Error>> {
    let cluster = Cluster::new(1);
    let (tell, mut came) = unbounded_channel();
    cluster.node("server", move |host| {
        let server = words::server(Desk(tell.clone()));
        host.mesh("words", |mesh| {
            mesh.rid("server").listen("tcp://server:1").serve(server)
        })
    });
    cluster.node("client", |host| {
        host.mesh("words", |mesh| {
            mesh.listen("tcp://client:1")
                .connect("tcp://server:1")
                .client(words::OBSTACLES)
        })
    });
    cluster.start_all().await?;
    cluster.ready(std::time::Duration::from_secs(5)).await;
    let calls = Box::pin(call_all(&cluster.host("client"), &mut came)).await?;
    assert_eq!(calls, 142);
    Ok(cluster.shutdown().await?)
}

/// Tells which event came, and under which topic.
struct Ear(UnboundedSender<(&'static str, String)>);

/// A fanout whose events are all of one of five messages, and a publisher of each.
macro_rules! ear {
    ($($event:ty: $message:expr, $($tell:ident)*;)*) => {
        impl ObstaclesHandler_3 for Ear {
            $($(async fn $tell(&self, context: &FanoutContext<'_>, _: $event) -> Result<(), HandlerError> {
                let topic = context.topic().to_owned();
                self.0.send((stringify!($tell), topic)).map_err(|gone| HandlerError::new(gone.to_string()))
            })*)*
        }

        /// Publishes every event; each must come where it is named to. Returns the topics.
        async fn publish_all(
            host: &Host,
            came: &mut UnboundedReceiver<(&'static str, String)>,
        ) -> Result<Vec<String>, CallError> {
            let publisher = words::publisher(host);
            let mut topics = Vec::new();
            $($(
                publisher.$tell($message).await?;
                let (event, topic) = came.recv().await.expect("the subscriber is there");
                assert_eq!(event, stringify!($tell));
                topics.push(topic);
            )*)*
            Ok(topics)
        }
    };
}

ear! {
    words::Result: words::Result::default(), r#as r#gen r#async string send handler context foo_bar x_2 poll;
    words::String: string(), r#break self_ r#await vec future event topic foo_bar_5 on_2 unwrap;
    words::Self_: words::Self_ {}, r#const self_2 r#try ok rt route name foo_bar_3 clone drop;
    zlink_generated::core::Option: zlink_generated::core::Option::default(),
    crate_ super_ result none std caller name_2 foo_bar_2 into_2 publish;
    zlink_generated::crate_::Result: zlink_generated::crate_::Result::default(),
    r#fn r#type option clone_2 core channel foo_bar_4 x try_into_2 subscriber;
}

/// REQ: CH-802, CH-905
#[tokio::test(start_paused = true)]
async fn events_of_every_name_come_where_they_are_named_to() -> Result<(), Box<dyn std::error::Error>> {
    let cluster = Cluster::new(1);
    let (tell, mut came) = unbounded_channel();
    cluster.node("publisher", |host| {
        host.fanout(|fanout| fanout.publisher(words::OBSTACLES_3).listen("tcp://publisher:1"))
    });
    cluster.node("subscriber", move |host| {
        let subscriber = words::subscriber(Ear(tell.clone()));
        host.fanout(|fanout| fanout.subscriber(subscriber).connect("tcp://publisher:1"))
    });
    cluster.start_all().await?;
    let subscriber = cluster.host("subscriber");
    let ready = || {
        let fanout = subscriber.fanout(words::OBSTACLES_3.as_str());
        fanout.is_ok_and(|fanout| fanout.intents()[0].state == PeerState::Ready)
    };
    let patience = std::time::Duration::from_secs(20);
    cluster.until("the publisher has been heard of", patience, ready).await;
    let topics = Box::pin(publish_all(&cluster.host("publisher"), &mut came)).await?;
    assert_eq!(topics.len(), 50);
    for topic in ["obstacles.obstacles.as", "a\"b\\break", ""] {
        assert!(topics.iter().any(|it| it == topic), "{topic} in {topics:?}");
    }
    Ok(cluster.shutdown().await?)
}
