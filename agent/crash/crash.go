// Package crash names the moments between two steps of the agent's flows, so that a test can kill the agent at each of them and
// show that the next start continues, or stop it there while PostgreSQL crashes. Nothing happens at a point that is not armed.
package crash

import (
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

// Env names the environment variable that ArmFromEnv reads: a point, or Stop and a point. File names that of a file which says
// the same while the process runs, from when it is there.
const (
	Env  = "PGHERD_CRASH_AT"
	File = "PGHERD_CRASH_FILE"
	Stop = "stop:"
)

// Points lists every point.
var Points []string

func point(name string) string {
	Points = append(Points, name)
	return name
}

// The points, by flow.
var (
	CreateAdmitted = point("agent.create.admitted") // the command is in the ledger, nothing is made
	CreateLogins   = point("agent.create.logins")   // the roles stand, gates closed
	CreateDatabase = point("agent.create.database") // the database stands under its temporary name
	CreateRights   = point("agent.create.rights")   // the database is hardened
	CreateRenamed  = point("agent.create.renamed")  // the database has its name, gates open
	CreatePooled   = point("agent.create.pooled")   // PgBouncer has its entries
	CreateProved   = point("agent.create.proved")   // the owner has logged in, the outcome is not stored
	CreateReply    = point("agent.create.reply")    // the outcome is stored, not told

	AccessAdmitted   = point("agent.access.admitted")   // the generation is in the ledger
	AccessGateClosed = point("agent.access.gateclosed") // nobody new passes the pooler
	AccessEvicted    = point("agent.access.evicted")    // no client of the pooler is left
	AccessLoginsOff  = point("agent.access.loginsoff")  // the logins are NOLOGIN
	AccessEnded      = point("agent.access.ended")      // no session is left
	AccessReply      = point("agent.access.reply")      // the outcome is stored, not told

	AllowlistStored  = point("agent.allowlist.stored")  // the networks are in the ledger
	AllowlistApplied = point("agent.allowlist.applied") // PgBouncer goes by them
	AllowlistEvicted = point("agent.allowlist.evicted") // no client from elsewhere is left
	AllowlistReply   = point("agent.allowlist.reply")   // the outcome is stored, not told

	ForwardStored  = point("agent.forward.stored")  // the forward is in the ledger, nobody whose password is new passes
	ForwardApplied = point("agent.forward.applied") // PgBouncer has its entries
	ForwardEvicted = point("agent.forward.evicted") // nobody is left whose password is another one now
	ForwardReply   = point("agent.forward.reply")   // everybody passes, the outcome is stored, not told

	EndForwardShut    = point("agent.forward.end.shut")    // nobody new passes
	EndForwardEvicted = point("agent.forward.end.evicted") // no client is left
	EndForwardGone    = point("agent.forward.end.gone")    // the ledger has no forward, PgBouncer has its entries
	EndForwardReply   = point("agent.forward.end.reply")   // the outcome is stored, not told

	WelcomeStored = point("agent.forward.welcome.stored") // the addresses are in the ledger
	WelcomeReply  = point("agent.forward.welcome.reply")  // the outcome is stored, not told

	SettingsAdmitted    = point("agent.settings.admitted")    // the generation is in the ledger, nothing is set
	SettingsStored      = point("agent.settings.stored")      // the settings are in force, and the gate is shut or open
	SettingsClosed      = point("agent.settings.closed")      // no client and no session is left in a database that is shut
	SettingsReconnected = point("agent.settings.reconnected") // PgBouncer connects anew, the outcome is not stored
	SettingsReply       = point("agent.settings.reply")       // the outcome is stored, not told

	PrepareAdmitted = point("agent.login.prepare.admitted") // the command is in the ledger, nothing is made
	PrepareMade     = point("agent.login.prepare.made")     // the role stands without log-in
	PreparePooled   = point("agent.login.prepare.pooled")   // PgBouncer has its limit, the outcome is not stored
	PrepareReply    = point("agent.login.prepare.reply")    // the outcome is stored, not told

	OverlayAdmitted = point("agent.overlay.admitted") // the command is in the ledger, nothing is made
	OverlayGroups   = point("agent.overlay.groups")   // the group roles stand, with rights on nothing
	OverlayLater    = point("agent.overlay.later")    // the default privileges stand, the ledger has no transaction after them
	OverlayListed   = point("agent.overlay.listed")   // what lacks rights is listed, none is granted in this turn
	OverlayLeft     = point("agent.overlay.left")     // a turn is over that has left something
	OverlayRead     = point("agent.overlay.read")     // nothing lacks rights any more, no mark says so
	OverlayGranted  = point("agent.overlay.granted")  // their rights stand, the outcome is not stored
	OverlayReply    = point("agent.overlay.reply")    // the outcome is stored, not told

	OpenAdmitted = point("agent.login.open.admitted") // the command is in the ledger, the login is shut
	OpenOpened   = point("agent.login.open.opened")   // it has grants and password, and may log in
	OpenProved   = point("agent.login.open.proved")   // it has logged in, the outcome is not stored
	OpenReply    = point("agent.login.open.reply")    // the outcome is stored, not told

	ChangeAdmitted   = point("agent.login.change.admitted")   // the generation is in the ledger
	ChangeGateClosed = point("agent.login.change.gateclosed") // nobody new passes the pooler as the login
	ChangeEvicted    = point("agent.login.change.evicted")    // no client of the pooler is left
	ChangeLoginOff   = point("agent.login.change.loginoff")   // the login is NOLOGIN
	ChangeEnded      = point("agent.login.change.ended")      // no session is left
	ChangeSet        = point("agent.login.change.set")        // the login has the password, or lack of it, that it shall have
	ChangeProved     = point("agent.login.change.proved")     // log-ins have shown what works and what does not
	ChangeSwept      = point("agent.login.change.swept")      // no session of before is left, the outcome is not stored
	ChangeReply      = point("agent.login.change.reply")      // the outcome is stored, not told

	RemoveAdmitted = point("agent.login.remove.admitted") // the command is in the ledger, the role stands
	RemoveShut     = point("agent.login.remove.shut")     // nobody logs in as it
	RemoveDropped  = point("agent.login.remove.dropped")  // the role and its rows are gone, PgBouncer still has its limit
	RemoveReply    = point("agent.login.remove.reply")    // the outcome is stored, not told

	BackupAdmitted = point("agent.backup.admitted") // the command is in the ledger, no job runs
	BackupStarted  = point("agent.backup.started")  // the job runs
	BackupFinished = point("agent.backup.finished") // the job is over, its report is not stored
	BackupFailed   = point("agent.backup.failed")   // the failure is stored, what the backup left is not removed
	BackupReply    = point("agent.backup.reply")    // the report is stored, not told

	ExtensionLogin     = point("agent.extension.login")     // the login of a change stands, nothing is begun
	ExtensionTold      = point("agent.extension.told")      // the transaction is in the ledger, nothing is changed
	ExtensionMade      = point("agent.extension.made")      // the change is made, not committed
	ExtensionCommitted = point("agent.extension.committed") // the change is committed, the login stands

	SwitchAdmitted    = point("agent.restore.switch.admitted")    // the command is in the ledger, customers are served
	SwitchOverlaid    = point("agent.restore.switch.overlaid")    // groups have their rights in the copy, customers are served
	SwitchGateClosed  = point("agent.restore.switch.gateclosed")  // nobody new passes the pooler
	SwitchAlone       = point("agent.restore.switch.alone")       // nobody is in the database
	SwitchRenamed     = point("agent.restore.switch.renamed")     // the copy has the database's place, gates closed
	SwitchReconnected = point("agent.restore.switch.reconnected") // PgBouncer connects anew
	SwitchOpened      = point("agent.restore.switch.opened")      // customers are served from the copy, the outcome is not stored
	SwitchReply       = point("agent.restore.switch.reply")       // the outcome is stored, not told
	SwitchUndone      = point("agent.restore.switch.undone")      // the database is open again as before, the copy stands

	DiscardPassing = point("agent.restore.discard.passing") // what only the operation needed is removed, the outcome is not stored
	DiscardReply   = point("agent.restore.discard.reply")   // the outcome is stored, not told

	IsolateAdmitted = point("agent.delete.isolate.admitted") // the command is in the ledger, nothing is changed
	IsolateAlone    = point("agent.delete.isolate.alone")    // nobody is in the database, and nobody gets in
	IsolateReply    = point("agent.delete.isolate.reply")    // it is isolated and the outcome stored, PgBouncer has its entries

	RejoinAdmitted = point("agent.delete.rejoin.admitted") // the command is in the ledger, nothing is changed
	RejoinRenamed  = point("agent.delete.rejoin.renamed")  // the database has its name again, nobody gets in
	RejoinPooled   = point("agent.delete.rejoin.pooled")   // PgBouncer has its entries
	RejoinOpened   = point("agent.delete.rejoin.opened")   // customers are served, the outcome is not stored
	RejoinReply    = point("agent.delete.rejoin.reply")    // the outcome is stored, not told

	PurgeAdmitted  = point("agent.delete.purge.admitted")  // the command is in the ledger, nothing is removed
	PurgeFiles     = point("agent.delete.purge.files")     // the files are gone, the database stands
	PurgeDropped   = point("agent.delete.purge.dropped")   // the database is dropped, its logins stand
	PurgeForgotten = point("agent.delete.purge.forgotten") // the logins and their rows are gone, the outcome is not stored
	PurgeReply     = point("agent.delete.purge.reply")     // the outcome is stored, not told

	FollowIntended    = point("agent.move.follow.intended")    // the ledger has it, nothing is made
	FollowPublished   = point("agent.move.follow.published")   // the publication stands
	FollowSlot        = point("agent.move.follow.slot")        // the slot stands, nothing is dumped
	FollowTaken       = point("agent.move.follow.taken")       // the snapshot is taken, and the login stands
	FollowSlotDropped = point("agent.move.follow.slotdropped") // the slot is gone, login and publication stand

	SubscribeIntended = point("agent.move.subscribe.intended") // what will be in the way is in the ledger, nothing is changed
	SubscribeMade     = point("agent.move.subscribe.made")     // the subscription stands
	FollowReply       = point("agent.move.follow.reply")       // that it has failed is stored, not told
	SubscribeDropped  = point("agent.move.subscribe.dropped")  // the operation is closed, and the subscription gone

	PartAdmitted   = point("agent.move.part.admitted")   // the command is in the ledger, customers are served
	PartGateClosed = point("agent.move.part.gateclosed") // nobody new passes the pooler
	PartAlone      = point("agent.move.part.alone")      // nobody is in the database
	PartReply      = point("agent.move.part.reply")      // the outcome is stored, not told
	PartUndone     = point("agent.move.part.undone")     // the database is open again as before

	TakeReached = point("agent.move.take.reached") // all changes are there, and the ledger says so
	TakeDropped = point("agent.move.take.dropped") // the subscription is gone, and the rest is taken over
	TakeReply   = point("agent.move.take.reply")   // the outcome is stored, not told

	ServeAdmitted = point("agent.move.serve.admitted") // the command is in the ledger, nobody is let in
	ServeReply    = point("agent.move.serve.reply")    // the outcome is stored, not told

	DepartAdmitted = point("agent.move.depart.admitted") // the command is in the ledger, the database stands
	DepartUnkept   = point("agent.move.depart.unkept")   // its changes are not kept any more
	DepartDropped  = point("agent.move.depart.dropped")  // the database is dropped, its logins stand
	DepartReply    = point("agent.move.depart.reply")    // the outcome is stored, not told

	CloseRecorded = point("agent.close.recorded") // the operation takes no more commands, nothing is undone
	CloseEmptied  = point("agent.close.emptied")  // customers are out, the job is over
	CloseDropped  = point("agent.close.dropped")  // the database is dropped, its logins stand
	CloseUndone   = point("agent.close.undone")   // the logins and their rows are gone, PgBouncer still has the entries
	CloseReply    = point("agent.close.reply")    // the outcome is stored, not told

	StartNamed  = point("agent.start.named")  // the predecessor can write no more on new connections
	StartEnded  = point("agent.start.ended")  // the predecessor's sessions are gone
	StartLocked = point("agent.start.locked") // this agent has the lock
)

// armed is nil where no point ever will be.
var armed atomic.Pointer[arming]

type arming struct{ point, file string }

// ArmFromEnv arms the point that the environment names. Only test programs and the dev host call it, before anything runs.
func ArmFromEnv() { armed.Store(&arming{os.Getenv(Env), os.Getenv(File)}) }

func (a *arming) at() string {
	if a.point != "" || a.file == "" {
		return a.point
	}
	text, _ := os.ReadFile(a.file) // mostly it is not there
	return string(text)
}

// Point kills the process with SIGKILL if this point is armed for that, or the first time stops it until SIGCONT.
func Point(name string) {
	a := armed.Load()
	if a == nil {
		return
	}
	switch a.at() {
	case "":
	case name:
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // the signal is on its way; go no step further
	case Stop + name:
		armed.Store(&arming{file: a.file})
		_ = os.Remove(a.file) // where there is one
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		time.Sleep(250 * time.Millisecond) // the signal is on its way, on a busy machine for long
	}
}
