//! Who answers a client of the Model Context Protocol: this process, once it has the file open, else the process that has it.

use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use oubliette::exchange::LineReader;
use oubliette::mcp::{Desk, Question};
use oubliette::tools::{Caller, KnowledgeGraph, ToolError};
use oubliette::{Database, Error, Result};
use serde_json::{Value, json};

use crate::arguments::{Compat, HandOptions};
use crate::output::{Done, unwritable};
use crate::place::{Access, Place};
use crate::share::{Extra, Told};
#[cfg(unix)]
use crate::share::{FarDesk, Unanswered};
use crate::tool;

/// How long a question is put off that nobody can answer yet.
const PAUSE: Duration = Duration::from_millis(10);
/// The tools write as a language model does, and their searches are noted.
const EXTRA: Extra = Extra { dimensions: None, is_tool: true, track: true };

/// A desk that asks the process that has the file open. When there is none, it opens the file itself, and answers others.
pub(crate) struct OwnDesk {
    place: Arc<Place>,
    hand: HandOptions,
    /// The file, once it is open here.
    near: RwLock<Option<(Database, Arc<dyn Desk>)>>,
    opening: Mutex<()>,
    #[cfg(unix)]
    far: Option<FarDesk>,
}

impl OwnDesk {
    /// Opens the file, or finds the process that has it open.
    ///
    /// # Errors
    /// Those of an opening, and `Conflict` where that process does not work for this one.
    pub(crate) fn new(hand: HandOptions, place: Arc<Place>) -> Result<Self> {
        #[cfg(unix)]
        let far = match place.sharing() {
            Some(_) => Some(FarDesk::new(place.path()?.to_owned(), std::env::args_os().collect())),
            None => None,
        };
        let (near, opening) = (RwLock::default(), Mutex::default());
        let desk = OwnDesk {
            place,
            hand,
            near,
            opening,
            #[cfg(unix)]
            far,
        };
        // Whatever is wrong is said before the first question.
        desk.reach(&Question::Tools, &Nobody)?
            .map_err(|why| Error::Conflict { what: "the tools".to_owned(), why: why.message })?;
        Ok(desk)
    }

    /// The answer of whoever has the file open, which may be this process from now on.
    fn reach(
        &self,
        question: &Question,
        caller: &dyn Caller,
    ) -> Result<std::result::Result<Value, ToolError>> {
        let mut deadline = Instant::now() + self.place.patience();
        loop {
            if caller.is_gone() {
                return Err(left());
            }
            if let Some((_, tools)) = &*self.near.read().unwrap_or_else(PoisonError::into_inner) {
                return Ok(tools.respond(question.clone(), caller));
            }
            #[cfg(unix)]
            if let Some(far) = &self.far {
                let begun = Instant::now();
                let asked = far.ask(question, caller);
                // While another process works on the question, the file is not waited for.
                deadline += begun.elapsed();
                match asked {
                    Ok(answer) => return Ok(answer),
                    Err(Unanswered::Nobody) => {}
                    Err(Unanswered::Left) => return Err(left()),
                    Err(Unanswered::Lost) => return Err(crate::route::lost()),
                    Err(Unanswered::Refused(why)) => {
                        let what = "the process that has the database open".to_owned();
                        return Err(Error::Conflict { what, why });
                    }
                }
            }
            match self.open() {
                Err(Error::Locked { .. }) if self.is_answered() && Instant::now() < deadline => {
                    std::thread::sleep(PAUSE);
                }
                opened => opened?,
            }
        }
    }

    fn is_answered(&self) -> bool {
        self.place.sharing().is_some_and(crate::share::Sharing::take_found)
    }

    fn open(&self) -> Result<()> {
        let _one = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        if self.near.read().unwrap_or_else(PoisonError::into_inner).is_some() {
            return Ok(());
        }
        let database = self.place.open_with(Access::Create, EXTRA)?;
        let tools = tools(&self.hand, &database, &self.place)?;
        *self.near.write().unwrap_or_else(PoisonError::into_inner) = Some((database, tools));
        Ok(())
    }

    /// Closes the file, if it is open here, once others are answered.
    ///
    /// # Errors
    /// Those of the database.
    pub(crate) fn close(&self) -> Result<()> {
        let near = self.near.write().unwrap_or_else(PoisonError::into_inner).take();
        near.map_or(Ok(()), |(database, _)| self.place.close(database))
    }
}

impl Desk for OwnDesk {
    fn respond(&self, question: Question, caller: &dyn Caller) -> std::result::Result<Value, ToolError> {
        self.reach(&question, caller).unwrap_or_else(|why| Err(ToolError::of_error(&why)))
    }
}

/// Instead of an answer that nobody would hear.
fn left() -> Error {
    Error::Unavailable { why: "whoever asked has left".to_owned() }
}

/// Nobody who would leave.
struct Nobody;

impl Caller for Nobody {
    fn progress(&self, _done: u64, _of: Option<u64>) {}

    fn is_gone(&self) -> bool {
        false
    }
}

/// What is handed out of a file that is open here.
fn tools(hand: &HandOptions, database: &Database, place: &Place) -> Result<Arc<dyn Desk>> {
    let namespace = database.namespace(place.namespace()?)?;
    Ok(match hand.compat {
        Some(Compat::ServerMemory) => Arc::new(KnowledgeGraph::new(namespace)),
        None => Arc::new(tool::toolbox(&hand.writer, namespace, place.caller())?),
    })
}

/// Answers the questions of another process, a line each.
pub(crate) fn answer(hand: &HandOptions, place: &Place) -> Done {
    let database = place.open_with(Access::Create, EXTRA)?;
    let tools = tools(hand, &database, place)?;
    let mut lines = LineReader::new(place.caller().lines(), "standard input");
    let tell = |told: &Told| {
        let mut out = place.caller().output();
        out.write_all(format!("{}\n", json!(told)).as_bytes()).and_then(|()| out.flush())
    };
    let guest = Guest { place, tell: &|told| drop(tell(told)) };
    while let Some((_, line)) = lines.next_line()? {
        // A question that nobody waits for any more is not begun.
        if guest.is_gone() {
            break;
        }
        let question = serde_json::from_slice(line).map_err(|why| {
            let shown = String::from_utf8_lossy(line).into_owned();
            ToolError::of_error(&Error::invalid("question", format!("must be one of a server: {why}"), shown))
        });
        let answer = question.and_then(|question: Question| tools.respond(question, &guest));
        tell(&Told::Answer(answer)).map_err(unwritable)?;
    }
    place.close(database)?;
    Ok(())
}

/// Somebody at another process.
struct Guest<'a> {
    place: &'a Place,
    tell: &'a dyn Fn(&Told),
}

impl Caller for Guest<'_> {
    fn progress(&self, done: u64, of: Option<u64>) {
        // Whether somebody hears it is found out with the answer.
        (self.tell)(&Told::Progress(done, of));
    }

    fn is_gone(&self) -> bool {
        self.place.caller().is_gone()
    }
}
