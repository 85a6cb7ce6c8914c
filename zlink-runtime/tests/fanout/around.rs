//! What stands around an event's handler: filters, its scope, calls that it makes.

use std::sync::Arc;

use parking_lot::Mutex;
use zlink_generated::contract::Note;
use zlink_runtime::prelude::*;
use zlink_runtime::rt::FanoutContext;
use zlink_runtime::testing::Cluster;
use zlink_runtime::{Filter, FilterContext, FlowContext, FlowOrigin, MessageKind, Next};

use crate::kit::{
    AT_ONCE, Events, NEWS, NewsHandler, Reader, at, connected, news_publisher, news_subscriber, note, publisher,
    subscriber,
};

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

struct Named(&'static str, Log);

impl Filter for Named {
    async fn handle(&self, context: &FilterContext<'_>, next: Next<'_>) -> Result<(), HandlerError> {
        assert_eq!(context.channel().map(ChannelName::as_str), Some("news"));
        assert_eq!((context.kind(), context.correlation()), (MessageKind::Send, None));
        assert!(context.mesh().is_none() && context.metadata().get("any").is_none());
        let topic = context.topic().unwrap().to_owned();
        self.1.0.lock().push(format!("{}>{topic}", self.0));
        context.scope().set(self.0);
        if topic == "skip" {
            return Ok(());
        }
        let ended = next.run().await;
        self.1.0.lock().push(format!("<{}", self.0));
        ended
    }
}

/// Publishes what it gets anew, as another event.
struct Echo(Log);

impl NewsHandler for Echo {
    async fn flash(&self, context: &FanoutContext<'_>, event: Note) -> Result<(), HandlerError> {
        let outer = context.scope().get::<&str>();
        self.0
            .0
            .lock()
            .push(format!("{outer:?} {}", context.scope().number() > 0));
        news_publisher(context).order(event).await?;
        Ok(())
    }

    async fn order(&self, _: &FanoutContext<'_>, _: Note) -> Result<(), HandlerError> {
        Ok(())
    }
}

/// REQ: CH-606, CH-607, MSG-305
#[tokio::test(start_paused = true)]
async fn filters_stand_around_the_handlers_of_events() {
    let cluster = Cluster::new(1);
    let (log, reader) = (Log::default(), Reader::new());
    publisher(&cluster, "p", |fanout| fanout);
    let inner = log.clone();
    // It publishes on, itself, what it is told.
    cluster.node("s", move |host| {
        host.filter(Named("one", inner.clone()))
            .filter(Named("two", inner.clone()))
            .fanout(|fanout| {
                fanout
                    .publisher(NEWS)
                    .listen(at("s"))
                    .subscriber(news_subscriber(Echo(inner.clone())))
                    .connect(at("p"))
            })
    });
    subscriber(&cluster, "last", &["s"], &reader, |fanout| fanout);
    cluster.start_all().await.unwrap();
    connected(&cluster, 1).await;
    let s = cluster.host("s");
    cluster
        .until("the last", AT_ONCE * 60, move || {
            s.fanout("news").unwrap().subscribers() == 1
        })
        .await;
    let publish = news_publisher(&cluster.host("p"));
    publish.flash(note(1)).topic("a").await.unwrap();
    cluster.advance(AT_ONCE).await;
    publish.flash(note(2)).topic("skip").await.unwrap();
    cluster.advance(AT_ONCE).await;
    let expected = ["one>a", "two>a", "Some(\"two\") true", "<two", "<one", "one>skip"];
    assert_eq!(*log.0.lock(), expected);
    assert_eq!(reader.numbers(), [1]);
}

/// Notes the flow it runs in, and publishes on what it gets as another event.
#[derive(Clone, Default)]
struct Traced(Arc<Mutex<Vec<FlowContext>>>);

impl NewsHandler for Traced {
    async fn flash(&self, context: &FanoutContext<'_>, event: Note) -> Result<(), HandlerError> {
        self.0.lock().push(FlowContext::capture());
        Ok(news_publisher(context).order(event).await?)
    }

    async fn order(&self, _: &FanoutContext<'_>, _: Note) -> Result<(), HandlerError> {
        self.0.lock().push(FlowContext::capture());
        Ok(())
    }
}

/// An event belongs to what caused it, over several hosts, and is no boundary that is told of.
///
/// REQ: OB-84, OB-65
#[tokio::test(start_paused = true)]
async fn a_flow_goes_through_events() {
    let events = Events::collect();
    let cluster = Cluster::new(2);
    let seen = Traced::default();
    publisher(&cluster, "p", |fanout| fanout);
    for (name, from) in [("s", "p"), ("last", "s")] {
        let handler = seen.clone();
        cluster.node(name, move |host| {
            let subscriber = news_subscriber(handler.clone());
            host.fanout(|fanout| {
                fanout
                    .publisher(NEWS)
                    .listen(at(name))
                    .subscriber(subscriber)
                    .connect(at(from))
            })
        });
    }
    cluster.start_all().await.unwrap();
    let s = cluster.host("s");
    connected(&cluster, 1).await;
    cluster
        .until("the last", AT_ONCE * 60, move || {
            s.fanout("news").unwrap().subscribers() == 1
        })
        .await;
    cluster.advance(AT_ONCE).await;
    for number in 0..2 {
        news_publisher(&cluster.host("p")).flash(note(number)).await.unwrap();
        cluster.advance(AT_ONCE).await;
    }
    let ids: Vec<_> = seen.0.lock().iter().map(|flow| flow.id().unwrap()).collect();
    assert_eq!(ids.len(), 4);
    assert!(ids[0] == ids[1] && ids[2] == ids[3] && ids[0] != ids[2]);
    assert_eq!(seen.0.lock()[1].origin(), Some(FlowOrigin::Application));
    assert_eq!(events.count(&["zlink::flow"]), 0);
}
