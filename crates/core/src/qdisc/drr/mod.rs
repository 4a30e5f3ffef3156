//! `drr`: deficit round robin (Shreedhar and Varghese 1995; man tc-drr; facts D.8), and DRR-LDS
//! (Menth, Mehl and Veith: "Deficit Round Robin with Limited Deficit Savings").
//!
//! Two forms. With *classes*, as Linux's: each class has a quantum, or a weight to multiply it by,
//! and a discipline of its own. Packets name their class, and those that name none are dropped.
//! Without, as the paper's: a queue for each user (source or destination host) or each flow, found
//! by hash. When the `buffer` is full, the longest queue gives up its oldest packet (McKenney's
//! buffer stealing: drop-on-enqueue). With a `max-age`, packets that waited longer are dropped when
//! their turn comes (drop-on-dequeue).
//!
//! In both forms a packet is sent once its queue has saved up for it. With `savings`, empty queues
//! save up to a limit, too (`sched/savings.rs`).

mod classes;
mod users;
mod words;

use alloc::boxed::Box;
use alloc::vec::Vec;

use self::classes::Classes;
use self::users::Users;
use super::child::Tally;
use super::{
    prepared, spare_of, Backlog, Config, ConfigError, Detail, Device, Managed, PacketOwner, Qdisc,
    Snapshot, Totals,
};
use crate::memory::copied;
use crate::packet::Packet;
use crate::sched::ways::WAYS;
use crate::steps::MOST_CLASSES;
use crate::time::{Span, Time};

/// Settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Params {
    /// Owners of the queues, without classes.
    pub user: User,
    /// Queues, without classes: a power of two, 8 to 65536.
    pub queues: u32,
    /// Bytes that a queue earns in its turn, above zero; the device's MTU if None.
    pub quantum: Option<u32>,
    /// Packets that may be queued, without classes; above zero.
    pub buffer: u32,
    /// Longest time that a packet may wait, without classes; None for no bound.
    pub max_age: Option<Span>,
    /// Most savings of an empty queue, in bytes.
    pub savings: Option<u32>,
    /// Classes; none for queues by user.
    pub classes: Vec<Class>,
}

/// Owner of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum User {
    /// Each flow's.
    #[default]
    Flow,
    /// Each source host's.
    SrcHost,
    /// Each destination host's.
    DstHost,
}

/// A class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// Major number in the upper 16 bits, minor in the lower. Packets are matched by the minor.
    pub id: u32,
    /// Bytes that it earns in its turn, before `weight`; that of the discipline if None.
    pub quantum: Option<u32>,
    /// Quanta that it earns in its turn, above zero.
    pub weight: u32,
    /// Its discipline; a `pfifo` if None.
    pub child: Option<Box<Config>>,
}

/// Packets that may be queued if nothing else is said.
pub const DEFAULT_BUFFER: u32 = 1000;
/// Queues if nothing else is said.
pub const DEFAULT_QUEUES: u32 = 1024;

impl Default for Params {
    fn default() -> Params {
        Params {
            user: User::Flow,
            queues: DEFAULT_QUEUES,
            quantum: None,
            buffer: DEFAULT_BUFFER,
            max_age: None,
            savings: None,
            classes: Vec::new(),
        }
    }
}

impl Params {
    /// Checks what the grammar cannot know to be wrong.
    fn validate(&self) -> Result<(), ConfigError> {
        let check = |ok: bool, option, expected| {
            ok.then_some(()).ok_or(ConfigError::OutOfRange { option, expected })
        };
        let in_range = (WAYS..=65_536).contains(&self.queues);
        let queues = "a power of two from 8 to 65536";
        check(in_range && self.queues.is_power_of_two(), "queues", queues)?;
        check(self.quantum != Some(0), "quantum", "at least 1 byte")?;
        check(self.buffer > 0, "buffer", "at least 1 packet")?;
        check(self.classes.len() <= MOST_CLASSES, "class", "at most 1024 of them")?;
        for (n, class) in self.classes.iter().enumerate() {
            check(class.quantum != Some(0), "quantum", "at least 1 byte")?;
            check(class.weight > 0, "weight", "at least 1")?;
            let known = self.classes[..n].iter().any(|other| other.minor() == class.minor());
            check(!known, "class", "each minor number once")?;
        }
        Ok(())
    }
}

impl Class {
    /// The number by which packets are matched.
    fn minor(&self) -> u16 {
        self.id as u16
    }
}

/// Deficit round robin, in either form.
#[derive(Debug)]
pub struct Drr {
    form: Form,
    /// But for `sent_packets`, which the others tell.
    totals: Totals,
    params: Params,
    device: Device,
}

#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // One for each discipline.
enum Form {
    Users(Users),
    Classes(Classes),
}

impl Drr {
    /// Empty queues for `device`.
    pub fn new(params: &Params, device: &Device) -> Result<Drr, ConfigError> {
        Ok(Drr {
            form: Form::new(params, device)?,
            totals: Totals::default(),
            params: Params { classes: copied(&params.classes)?, ..*params },
            device: *device,
        })
    }

    // A function for each form, kept apart, so that neither saves registers for the other's sake.

    #[inline(never)]
    fn enqueue_by_user(&mut self, packet: &Packet, now: Time, owner: &mut dyn PacketOwner) {
        let Form::Users(users) = &mut self.form else { return };
        users.enqueue(packet, now, &mut Tally { owner, dropped: &mut self.totals.dropped });
    }

    #[inline(never)]
    fn dequeue_by_user(&mut self, now: Time, owner: &mut dyn PacketOwner) -> Option<&mut Packet> {
        let Form::Users(users) = &mut self.form else { return None };
        let packet = users.dequeue(now, &mut Tally { owner, dropped: &mut self.totals.dropped })?;
        self.totals.sent_bytes += u64::from(packet.len);
        Some(packet)
    }

    /// As `enqueue_by_class`, where that is plain.
    #[inline(never)]
    fn enqueue_plain(&mut self, packet: &Packet, now: Time, owner: &mut dyn PacketOwner) {
        let Form::Classes(classes) = &mut self.form else { return };
        if !classes.admits(packet, now) {
            self.enqueue_by_class(packet, now, owner);
        }
    }

    /// As `dequeue_by_class`, where that is plain.
    #[inline(never)]
    fn dequeue_plain(&mut self, now: Time, owner: &mut dyn PacketOwner) -> Option<&mut Packet> {
        let ready = match &mut self.form {
            Form::Classes(classes) => classes.ready(),
            Form::Users(_) => None,
        };
        let Some(index) = ready else { return self.dequeue_by_class(now, owner) };
        let Form::Classes(classes) = &mut self.form else { return None };
        let packet = classes.send_ready(index)?;
        self.totals.sent_bytes += u64::from(packet.len);
        Some(packet)
    }

    #[inline(never)]
    fn enqueue_by_class(&mut self, packet: &Packet, now: Time, owner: &mut dyn PacketOwner) {
        let Form::Classes(classes) = &mut self.form else { return };
        classes.enqueue(packet, now, &mut Tally { owner, dropped: &mut self.totals.dropped });
    }

    #[inline(never)]
    fn dequeue_by_class(&mut self, now: Time, owner: &mut dyn PacketOwner) -> Option<&mut Packet> {
        let Form::Classes(classes) = &mut self.form else { return None };
        let mut tally = Tally { owner, dropped: &mut self.totals.dropped };
        let packet = classes.dequeue(now, &mut tally)?;
        self.totals.sent_bytes += u64::from(packet.len);
        Some(packet)
    }
}

impl Form {
    fn new(params: &Params, device: &Device) -> Result<Form, ConfigError> {
        params.validate()?;
        Ok(match params.classes.is_empty() {
            true => Form::Users(Users::new(params, device)?),
            false => Form::Classes(Classes::new(params, device)?),
        })
    }

    /// Takes in a packet that the other form had queued.
    fn take_over(&mut self, packet: &Packet, now: Time, owner: &mut Tally<'_>) {
        match self {
            Form::Users(users) => users.enqueue(packet, packet.enqueued, owner),
            Form::Classes(classes) => classes.enqueue(packet, now, owner),
        }
    }
}

impl Qdisc for Drr {
    #[inline]
    fn enqueue(&mut self, packet: &Packet, now: Time, owner: &mut dyn PacketOwner) {
        self.totals.enqueued_packets += 1;
        match &self.form {
            Form::Users(_) => self.enqueue_by_user(packet, now, owner),
            Form::Classes(classes) if classes.is_plain() => {
                self.enqueue_plain(packet, now, owner);
            }
            Form::Classes(_) => self.enqueue_by_class(packet, now, owner),
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Time, owner: &mut dyn PacketOwner) -> Option<&mut Packet> {
        match &self.form {
            Form::Users(_) => self.dequeue_by_user(now, owner),
            Form::Classes(classes) if classes.is_plain() => self.dequeue_plain(now, owner),
            Form::Classes(_) => self.dequeue_by_class(now, owner),
        }
    }

    #[inline]
    fn next_event(&self) -> Option<Time> {
        match &self.form {
            Form::Users(users) => users.next_event(),
            Form::Classes(classes) => classes.next_event(),
        }
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        match &self.form {
            Form::Users(users) => users.backlog(),
            Form::Classes(classes) => classes.backlog(),
        }
    }

    fn reset(&mut self, owner: &mut dyn PacketOwner) {
        let mut tally = Tally { owner, dropped: &mut self.totals.dropped };
        match &mut self.form {
            Form::Users(users) => users.reset(&mut tally),
            Form::Classes(classes) => classes.reset(&mut tally),
        }
    }
}

impl Managed for Drr {
    fn below(&self, n: usize) -> Option<(u32, &dyn Managed)> {
        match &self.form {
            Form::Users(_) => None,
            Form::Classes(classes) => classes.below(n, self.params.classes.get(n)?.id),
        }
    }

    fn snapshot(&self) -> Snapshot {
        let totals = self.totals.settled(self.backlog().packets);
        let totals = Totals { marked: self.marked(), ..totals };
        Snapshot { totals, backlog: self.backlog(), detail: Detail::Drr(()) }
    }

    fn marked(&self) -> u64 {
        match &self.form {
            Form::Users(_) => 0,
            Form::Classes(classes) => classes.marked(),
        }
    }

    fn config(&self) -> Config {
        Config::Drr(self.params.clone())
    }

    fn prepare(&self, config: &Config, now: Time) -> Result<Box<dyn Managed + Send>, ConfigError> {
        prepared::<Params>(config, &self.device, now)
    }

    fn adopt(&mut self, spare: &mut dyn Managed, now: Time, owner: &mut dyn PacketOwner) {
        let Some(spare) = spare_of::<Drr>(spare) else { return };
        let mut tally = Tally { owner, dropped: &mut self.totals.dropped };
        match (&mut self.form, &mut spare.form) {
            (Form::Classes(old), Form::Classes(new)) => {
                let below = (&*self.params.classes, &*spare.params.classes);
                new.inherit(old, below, now, &mut tally);
            }
            (Form::Users(old), new) => old.drain(|packet| new.take_over(packet, now, &mut tally)),
            (Form::Classes(old), new) => old.drain(|packet| new.take_over(packet, now, &mut tally)),
        }
        core::mem::swap(&mut self.form, &mut spare.form);
        core::mem::swap(&mut self.params, &mut spare.params);
    }
}

impl User {
    /// The hash by which `packet`'s queue is found.
    #[inline]
    fn hash(self, packet: &Packet) -> u32 {
        match self {
            User::Flow => packet.flow as u32,
            User::SrcHost => packet.src_host,
            User::DstHost => packet.dst_host,
        }
    }
}

#[cfg(test)]
mod tests;
