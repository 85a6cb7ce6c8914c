//! The fanouts of a host: what is wrong with a registration, and what can be asked and changed while they run.

use std::time::Duration;

use crate::clock;
use crate::error::ConfigError;
use crate::fanout::{Automatic, Fanout, FanoutSubscriber, OutletConfig, Subscribed, check_topic};
use crate::id::ChannelName;
use crate::limit::{LEAST_MESSAGE_BYTES, PAYLOAD_BYTES, PUBLISH_TIMEOUT, SUBSCRIPTIONS};
use crate::transport::Endpoint;

use super::control::STOPPED;
use super::status::{self, FanoutStatus};
use super::validate::{ANYWHERE, Listen, Mistakes, handler_mistakes, listen_plan, repeated};
use super::{FanoutBuilder, Host, IntentStatus};

/// A fanout whose registration is right.
pub(super) struct FanoutPlan {
    pub(super) name: ChannelName,
    pub(super) publisher: Option<(Listen, OutletConfig)>,
    pub(super) subscriber: Option<(FanoutSubscriber, Subscribed)>,
    pub(super) connect: Vec<Endpoint>,
    /// How it stands to the Location Store.
    pub(super) automatic: Automatic,
    pub(super) max_record: usize,
}

impl FanoutBuilder {
    /// The names that it gives, which are to be one.
    pub(super) fn names(&self) -> impl Iterator<Item = &ChannelName> {
        let subscribers = self.subscribers.iter().map(|subscriber| &subscriber.channel);
        self.publishers.iter().chain(subscribers)
    }
}

pub(super) fn plan(fanout: FanoutBuilder, store: bool, mistakes: &mut Mistakes) -> Option<FanoutPlan> {
    let Some(name) = fanout.names().next().cloned() else {
        let problem = "has no role; give it a publisher(…), a subscriber(…), or both";
        mistakes.add("fanout", problem);
        return None;
    };
    let place = format!("fanout {:?}", name.as_str());
    if let Some(other) = fanout.names().find(|other| **other != name) {
        let problem = format!("names {other:?}, too; register each fanout with a call of its own");
        mistakes.add(&place, problem);
    }
    if fanout.publishers.len() > 1 || fanout.subscribers.len() > 1 {
        mistakes.add(
            &place,
            "has a role twice; each of Publisher and Subscriber may be there once",
        );
    }
    let max_record = match fanout.max_message {
        0 => PAYLOAD_BYTES,
        bytes @ LEAST_MESSAGE_BYTES..=PAYLOAD_BYTES => bytes,
        bytes => {
            let problem =
                format!("max_message is {bytes}; it must be 0, or {LEAST_MESSAGE_BYTES} to {PAYLOAD_BYTES} bytes");
            mistakes.add(&place, problem);
            LEAST_MESSAGE_BYTES
        }
    };
    let store = store && !fanout.manual;
    let automatic = Automatic {
        publishes: store,
        subscribes: store && fanout.connect.is_empty(),
    };
    let publisher = publisher_plan(&place, &fanout, store, max_record, mistakes);
    let topics = topics_plan(&place, &fanout, mistakes);
    let connect = connect_plan(&place, &fanout, store, mistakes);
    let subscriber = fanout.subscribers.into_iter().next();
    if let Some(subscriber) = &subscriber {
        if subscriber.dispatch_limit == 0 {
            let problem = "has dispatch limit 0, so no handler could run; give at least 1";
            mistakes.add(&place, problem);
        }
        handler_mistakes(&place, subscriber.handlers.iter(), mistakes);
    }
    Some(FanoutPlan {
        name,
        publisher,
        subscriber: subscriber.zip(topics),
        connect,
        automatic,
        max_record,
    })
}

fn publisher_plan(
    place: &str,
    fanout: &FanoutBuilder,
    store: bool,
    max_record: usize,
    mistakes: &mut Mistakes,
) -> Option<(Listen, OutletConfig)> {
    let told: [(&str, bool); 4] = [
        ("listen", fanout.listen.is_some()),
        ("advertise", fanout.advertise.is_some()),
        ("no_drop", fanout.no_drop.is_some()),
        ("send_timeout", fanout.send_timeout.is_some()),
    ];
    if fanout.publishers.is_empty() {
        for (what, _) in told.iter().filter(|(_, is_set)| *is_set) {
            mistakes.add(
                place,
                format!("sets {what}, but has no Publisher role; remove it, or add publisher(…)"),
            );
        }
        return None;
    }
    if !store && fanout.listen.is_none() {
        let problem = "publishes to nobody: it has no listen endpoint, and no Location Store to be found in";
        mistakes.add(place, problem);
        return None;
    }
    let send_timeout = fanout.send_timeout.unwrap_or(PUBLISH_TIMEOUT);
    let send_timeout = mistakes.check(place, clock::timeout("send_timeout", send_timeout));
    let endpoint = fanout.listen.as_deref().unwrap_or(ANYWHERE);
    let listen = listen_plan(place, (endpoint, store), fanout.advertise.as_deref(), mistakes)?;
    let config = OutletConfig {
        no_drop: fanout.no_drop.unwrap_or(false),
        send_timeout: send_timeout.unwrap_or(Duration::ZERO),
        max_record,
    };
    Some((listen, config))
}

fn topics_plan(place: &str, fanout: &FanoutBuilder, mistakes: &mut Mistakes) -> Option<Subscribed> {
    if fanout.subscribers.is_empty() && !fanout.topics.is_empty() {
        let problem = "subscribes to topics, but has no Subscriber role; remove subscribe, or add subscriber(…)";
        mistakes.add(place, problem);
    }
    let right = fanout
        .topics
        .iter()
        .filter(|topic| mistakes.check(place, check_topic(topic)).is_some());
    let right: Vec<_> = right.map(String::as_str).collect();
    let subscribed = Subscribed::new(right);
    if subscribed.is_none() {
        mistakes.add(place, format!("subscribes to more than {} topics", SUBSCRIPTIONS - 1));
    }
    subscribed
}

fn connect_plan(place: &str, fanout: &FanoutBuilder, store: bool, mistakes: &mut Mistakes) -> Vec<Endpoint> {
    let subscribes = !fanout.subscribers.is_empty();
    if !subscribes && !fanout.connect.is_empty() {
        let problem = "connects, but has no Subscriber role; remove connect, or add subscriber(…)";
        mistakes.add(place, problem);
    }
    if subscribes && !store && !fanout.manual && fanout.connect.is_empty() {
        let problem = "has no endpoint to connect to, and no Location Store to find publishers in";
        mistakes.add(place, problem);
    }
    let endpoints = fanout.connect.iter();
    let endpoints: Vec<_> = endpoints
        .filter_map(|endpoint| mistakes.check(place, Endpoint::of_peer(endpoint)))
        .collect();
    for endpoint in repeated(endpoints.iter()) {
        mistakes.add(place, format!("connects to {endpoint} twice"));
    }
    endpoints
}

/// A handle to one fanout of a host.
#[derive(Debug)]
pub struct FanoutControl<'a> {
    host: &'a Host,
    fanout: &'a Fanout,
}

impl Host {
    /// The fanout `name` of this host.
    ///
    /// # Errors
    /// Where it has none.
    pub fn fanout(&self, name: impl AsRef<str>) -> Result<FanoutControl<'_>, ConfigError> {
        let name = name.as_ref();
        match self.0.fanouts.iter().find(|fanout| fanout.name().as_str() == name) {
            Some(fanout) => Ok(FanoutControl { host: self, fanout }),
            None => Err(ConfigError::new(
                format!("fanout {name:?}"),
                "is not registered with this host",
            )),
        }
    }
}

impl FanoutControl<'_> {
    /// Where subscribers reach the publisher of this host; `None` where it does not publish.
    #[must_use]
    pub fn endpoint(&self) -> Option<Endpoint> {
        self.fanout.endpoint().cloned()
    }

    /// How many subscribers are connected to the publisher of this host.
    #[must_use]
    pub fn subscribers(&self) -> usize {
        self.fanout.subscribers()
    }

    /// The publishers that were named by hand, and how they stand.
    #[must_use]
    pub fn intents(&self) -> Vec<IntentStatus> {
        let named = self.fanout.named().into_iter();
        named
            .map(|(endpoint, status)| IntentStatus {
                endpoint,
                expected: None,
                state: status.state(),
                failure: status.failure,
            })
            .collect()
    }

    /// How the fanout stands, with the publishers that were found.
    ///
    /// # Errors
    /// Where it only subscribes, to publishers that are named by hand: [`intents`](Self::intents) has those.
    pub fn status(&self) -> Result<FanoutStatus, ConfigError> {
        status::fanout(&self.host.0, self.fanout)
    }

    /// Takes what is published at that endpoint, too, from now on. One that is named already stays as it is.
    ///
    /// # Errors
    /// Where the endpoint cannot be dialled by anybody, this host does not subscribe by hand, or has stopped.
    pub fn connect(&self, endpoint: &str) -> Result<(), ConfigError> {
        let peer = Endpoint::of_peer(endpoint).map_err(|error| ConfigError::new(endpoint, error.to_string()))?;
        match self.fanout.connect(peer) {
            Some(true) => Ok(()),
            Some(false) => Err(ConfigError::new(endpoint, STOPPED)),
            None => Err(ConfigError::new(
                format!("fanout {:?}", self.fanout.name().as_str()),
                "has no Subscriber role in this host whose publishers are named by hand",
            )),
        }
    }

    /// Takes nothing more from there. Returns whether it was named. What had come is handled.
    ///
    /// # Errors
    /// Where the text is no endpoint.
    pub fn disconnect(&self, endpoint: &str) -> Result<bool, ConfigError> {
        let parsed: Result<Endpoint, _> = endpoint.parse();
        let parsed = parsed.map_err(|error| ConfigError::new(endpoint, error.to_string()))?;
        Ok(self.fanout.disconnect(&parsed))
    }
}
