//! Changes of fanouts: what programs of one version publish, and those of the other hear.
//!
//! It must not know which rules there are.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use zlink_runtime::prelude::*;
use zlink_runtime::testing::Cluster;

use crate::{after, before};

/// How often something was published, and heard, by change.
pub(crate) type Heard = BTreeMap<&'static str, (usize, usize)>;

/// Tells of which change it heard.
#[derive(Clone)]
struct Ear(UnboundedSender<&'static str>);

macro_rules! ears {
    ($($side:ident::$handler:ident of $row:literal: $($event:ident($message:ident))*;)*) => {
        $(impl $side::$handler for Ear {
            $(async fn $event(&self, _: &FanoutContext<'_>, _: $side::$message) -> Result<(), HandlerError> {
                self.0.send($row).map_err(|gone| HandlerError::new(gone.to_string()))
            })*
        })*
    };
}

ears! {
    before::EventAddedHandler of "event_added": keep(EventAdded);
    after::EventAddedHandler of "event_added": keep(EventAdded) more(EventAdded);
    before::EventRemovedHandler of "event_removed": keep(EventRemoved) gone(EventRemoved);
    after::EventRemovedHandler of "event_removed": keep(EventRemoved);
    before::EventRenamedHandler of "event_renamed": told(EventRenamed);
    after::EventRenamedHandler of "event_renamed": said(EventRenamed);
    before::EventIsAnotherHandler of "event_is_another": told(EventIsAnother);
    after::EventIsAnotherHandler of "event_is_another": told(EventIsAnotherNumber);
    before::TopicChangedHandler of "topic_changed": told(TopicChanged);
    after::TopicChangedHandler of "topic_changed": told(TopicChanged);
    before::TopicGoesOnHandler of "topic_goes_on": told(TopicGoesOn);
    after::TopicGoesOnHandler of "topic_goes_on": told(TopicGoesOn);
    before::TopicSaidHandler of "topic_said": told(TopicSaid);
    after::TopicSaidHandler of "topic_said": told(TopicSaid);
}

/// A host that publishes to every fanout, one that subscribes to each with a topic, and what that hears.
macro_rules! cluster {
    ($from:ident => $to:ident, $seed:literal: $($endpoint:literal $channel:ident $subscriber:ident $topic:literal;)*) => {{
        let cluster = Cluster::new($seed);
        let (tell, heard) = unbounded_channel();
        cluster.node("publisher", |host| host$(.fanout(|fanout| fanout.publisher($from::$channel).listen($endpoint)))*);
        cluster.node("subscriber", move |host| {
            host$(.fanout(|fanout| {
                fanout.subscriber($to::$subscriber(Ear(tell.clone()))).subscribe($topic).connect($endpoint)
            }))*
        });
        cluster.start_all().await?;
        let subscriber = cluster.host("subscriber");
        let ready = || {
            let all = [$($to::$channel),*];
            all.iter().all(|channel| {
                let fanout = subscriber.fanout(channel.as_str());
                fanout.is_ok_and(|fanout| fanout.intents().iter().all(|publisher| publisher.state == zlink_runtime::PeerState::Ready))
            })
        };
        cluster.until("every publisher has been heard of", Duration::from_secs(20), ready).await;
        (cluster, heard)
    }};
}

/// Publishes an event for each line.
macro_rules! publish {
    ($side:ident, $host:expr, $heard:ident: $($row:literal: $publisher:ident.$event:ident($message:expr);)*) => {
        $(
            $side::$publisher(&$host).$event($message).await?;
            $heard.entry($row).or_default().0 += 1;
        )*
    };
}

async fn listen(
    cluster: &Cluster,
    events: &mut UnboundedReceiver<&'static str>,
    heard: &mut Heard,
) -> Result<(), Box<dyn std::error::Error>> {
    cluster.advance(Duration::from_secs(1)).await;
    while let Ok(row) = events.try_recv() {
        heard.entry(row).or_default().1 += 1;
    }
    Ok(cluster.shutdown().await?)
}

/// Adds what newer subscribers hear of older publishers.
pub(crate) async fn older_publish(heard: &mut Heard) -> Result<(), Box<dyn std::error::Error>> {
    let (cluster, mut events) = cluster! { before => after, 5:
        "tcp://publisher:1" EVENT_ADDED event_added_subscriber "changes.";
        "tcp://publisher:2" EVENT_REMOVED event_removed_subscriber "changes.";
        "tcp://publisher:3" EVENT_RENAMED event_renamed_subscriber "changes.";
        "tcp://publisher:4" EVENT_IS_ANOTHER event_is_another_subscriber "changes.";
        "tcp://publisher:5" TOPIC_CHANGED topic_changed_subscriber "new.";
        "tcp://publisher:6" TOPIC_GOES_ON topic_goes_on_subscriber "news.today.";
        "tcp://publisher:7" TOPIC_SAID topic_said_subscriber "changes.topic_said.told";
    };
    publish! { before, cluster.host("publisher"), heard:
        "event_added": event_added_publisher.keep(before::EventAdded::default());
        "event_removed": event_removed_publisher.keep(before::EventRemoved::default());
        "event_removed": event_removed_publisher.gone(before::EventRemoved::default());
        "event_renamed": event_renamed_publisher.told(before::EventRenamed::default());
        "event_is_another": event_is_another_publisher.told(before::EventIsAnother { word: "word".to_owned() });
        "topic_changed": topic_changed_publisher.told(before::TopicChanged::default());
        "topic_goes_on": topic_goes_on_publisher.told(before::TopicGoesOn::default());
        "topic_said": topic_said_publisher.told(before::TopicSaid::default());
    }
    listen(&cluster, &mut events, heard).await
}

/// Adds what older subscribers hear of newer publishers.
pub(crate) async fn newer_publish(heard: &mut Heard) -> Result<(), Box<dyn std::error::Error>> {
    let (cluster, mut events) = cluster! { after => before, 6:
        "tcp://publisher:1" EVENT_ADDED event_added_subscriber "changes.";
        "tcp://publisher:2" EVENT_REMOVED event_removed_subscriber "changes.";
        "tcp://publisher:3" EVENT_RENAMED event_renamed_subscriber "changes.";
        "tcp://publisher:4" EVENT_IS_ANOTHER event_is_another_subscriber "changes.";
        "tcp://publisher:5" TOPIC_CHANGED topic_changed_subscriber "old.";
        "tcp://publisher:6" TOPIC_GOES_ON topic_goes_on_subscriber "news.";
        "tcp://publisher:7" TOPIC_SAID topic_said_subscriber "changes.topic_said.told";
    };
    let number = after::EventIsAnotherNumber {
        more: "more".to_owned(),
        ..Default::default()
    };
    publish! { after, cluster.host("publisher"), heard:
        // Nobody of before can want what is new.
        "event_added": event_added_publisher.keep(after::EventAdded::default());
        "event_removed": event_removed_publisher.keep(after::EventRemoved::default());
        "event_renamed": event_renamed_publisher.said(after::EventRenamed::default());
        "event_is_another": event_is_another_publisher.told(number);
        "topic_changed": topic_changed_publisher.told(after::TopicChanged::default());
        "topic_goes_on": topic_goes_on_publisher.told(after::TopicGoesOn::default());
        "topic_said": topic_said_publisher.told(after::TopicSaid::default());
    }
    listen(&cluster, &mut events, heard).await
}
