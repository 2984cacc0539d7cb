package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pgherd/pgherd/agent/archive"
	"github.com/pgherd/pgherd/agent/diskroom"
	"github.com/pgherd/pgherd/agent/floors"
	"github.com/pgherd/pgherd/agent/guard"
	"github.com/pgherd/pgherd/agent/health"
	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/loop"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/agent/setup"
	core "github.com/pgherd/pgherd/core/health"
)

// Figures are what the agent found when it last looked; a part that could not be looked at is nil.
type Figures struct {
	Connections *ledger.Capacity
	Waits       *Waits
	Disks       []Disk
	Held        []diskroom.Held
	Guard       guard.Figures
	Archive     *archive.Standing // nil also where none is kept
	// PoolerMemory is how many bytes PgBouncer has in memory; nil also where the agent cannot see its process.
	PoolerMemory *int64
}

// Waits are PgBouncer's clients that wait for a server connection.
type Waits struct {
	Clients int64
	Longest time.Duration
}

// Disk is the file system of a folder.
type Disk struct {
	Of                  string // data or backups
	Size, Free, Reserve int64  // bytes
	Files, FilesFree    int64  // how many there can be, and how many more; 0 where the file system does not say
}

// kept holds figures.
type kept struct {
	connections atomic.Pointer[ledger.Capacity]
	waits       atomic.Pointer[Waits]
	disks       atomic.Pointer[[]Disk]
	held        atomic.Pointer[[]diskroom.Held]
	archive     atomic.Pointer[archive.Standing]
	memory      atomic.Pointer[int64]
}

// Figures returns the newest, without a look.
func (a *Agent) Figures() Figures {
	f := Figures{
		Connections: a.kept.connections.Load(), Waits: a.kept.waits.Load(), Guard: a.guard.Figures(),
		Archive: a.kept.archive.Load(), PoolerMemory: a.kept.memory.Load(),
	}
	if disks := a.kept.disks.Load(); disks != nil {
		f.Disks = *disks
	}
	if held := a.kept.held.Load(); held != nil {
		f.Held = *held
	}
	return f
}

// The names of two checks.
const (
	CheckOfCharge   = "charge"
	CheckOfPostgres = "postgres"
)

// Healthy reports whether the health report says so.
func (a *Agent) Healthy() bool { return a.health.Report().Status == string(core.Healthy) }

// Checks says what is known of the things that the agent looks at.
func (a *Agent) Checks() []health.State { return a.health.States() }

// keep makes a look that keeps what it finds, and forgets what it found before where it fails.
func keep[T any](into *atomic.Pointer[T], find func(context.Context) (T, error)) func(context.Context) error {
	return func(ctx context.Context) error {
		found, err := find(ctx)
		if err != nil {
			into.Store(nil)
			return err
		}
		into.Store(&found)
		return nil
	}
}

// checks are what must hold on the server, each with its pace and its bound.
func (a *Agent) checks(report *pooler.Report) []health.Check {
	connections, disks := keep(&a.kept.connections, a.ledger.Capacity), keep(&a.kept.disks, a.disks)
	waits := keep(&a.kept.waits, func(ctx context.Context) (w Waits, err error) {
		w.Clients, w.Longest, err = report.Waits(ctx)
		return w, err
	})
	all := []health.Check{
		{Name: CheckOfCharge, Code: core.NotInCharge, Every: time.Second, Limit: time.Second, Look: a.lookAtCharge},
		{Name: CheckOfPostgres, Code: core.PostgresDown, Every: 3 * time.Second, Limit: 5 * time.Second, Look: a.lookAtPostgres},
		{Name: "setup", Code: core.NotInitialized, Every: 30 * time.Second, Limit: 5 * time.Second, Look: a.lookAtSetup},
		{Name: "protocol", Code: core.OtherProtocol, Every: 3 * time.Second, Limit: time.Second, Look: a.lookAtProtocol},
		{Name: "pgbouncer", Code: core.PoolerDown, Every: time.Second, Limit: time.Second, Look: a.lookAtPooler},
		{Name: "login", Code: core.LoginFailing, Every: 15 * time.Second, Limit: 8 * time.Second, Look: a.enterOutside},
		{Name: "pg_dump", Code: core.DumpUnusable, Every: time.Minute, Limit: 15 * time.Second, Look: a.lookAtDump},
		{Name: "backups", Code: core.BackupsUnwritable, Every: 30 * time.Second, Limit: 10 * time.Second, Look: a.writeBackups},
		{Name: "disks", Every: 15 * time.Second, Limit: 5 * time.Second, Look: func(ctx context.Context) error {
			if err := disks(ctx); err != nil {
				return err
			}
			return lookForRoom(*a.kept.disks.Load())
		}},
		{Name: "room", Every: 30 * time.Second, Limit: 10 * time.Second, Look: keep(&a.kept.held, a.room.Held)},
		{Name: "connections", Every: 15 * time.Second, Limit: 10 * time.Second, Look: func(ctx context.Context) error {
			if err := connections(ctx); err != nil {
				return err
			}
			return a.lookWhetherOversold(*a.kept.connections.Load())
		}},
		{Name: "waiting", Every: 5 * time.Second, Limit: 5 * time.Second, Look: func(ctx context.Context) error {
			if err := waits(ctx); err != nil {
				return err
			}
			return lookAtWaits(*a.kept.waits.Load())
		}},
		{Name: "commons", Every: 15 * time.Second, Limit: time.Second, Look: a.lookAtCommons},
		{Name: "memory", Every: 5 * time.Second, Limit: time.Second, Look: a.lookAtMemory},
	}
	if a.archive != nil {
		all = append(all,
			health.Check{Name: "archive", Every: 5 * time.Second, Limit: 5 * time.Second, Look: a.lookAtArchive},
			health.Check{Name: "archive_gap", Every: 5 * time.Second, Limit: 5 * time.Second, Look: a.lookForGap},
		)
	}
	if longest := a.config.ChecksEvery; longest > 0 {
		for i := range all {
			all[i].Every = min(all[i].Every, longest)
		}
	}
	return all
}

// charge is what is known of this agent's charge of its server.
type charge struct {
	mu        sync.Mutex
	confirmed time.Time
	trouble   error
}

// note takes the outcome of an attempt to take charge, or to confirm it.
func (c *charge) note(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.trouble = err; err == nil {
		c.confirmed = time.Now()
	}
}

func (c *charge) known() (confirmed time.Time, trouble error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.confirmed, c.trouble
}

// confirmTime is how old the last confirmation of the charge may be: the ledger is asked every second.
const confirmTime = 10 * time.Second

func (a *Agent) lookAtCharge(context.Context) error { return a.confirmed() }

// confirmed returns an error unless the agent is in charge of its server and has confirmed that lately.
func (a *Agent) confirmed() error {
	confirmed, trouble := a.charge.known()
	switch {
	case a.InCharge() && time.Since(confirmed) > confirmTime:
		since := confirmed.UTC().Format(time.RFC3339)
		if trouble == nil { // the confirmation itself hangs
			trouble = errors.New("PostgreSQL has not answered since then")
		}
		return fmt.Errorf("the agent has not been able to confirm since %s that it is in charge of its server: %w", since, trouble)
	case a.InCharge():
		return nil
	case trouble == nil:
		return errNotInCharge
	}
	return unprepared(fmt.Errorf("the agent is not yet in charge of its server: %w", trouble))
}

// unprepared turns the error of a server that agent init has not prepared into that reason.
func unprepared(err error) error {
	if errors.Is(err, setup.ErrUnprepared) {
		return health.Find(core.NotInitialized, err.Error())
	}
	return err
}

// answerTime is how long ago PostgreSQL may have answered the agent in charge.
const answerTime = 3 * time.Second

// postgresAnswers asks only where the agent in charge, which has a connection for that and asks every second, got no answer: the
// other connections may all be in use.
func (a *Agent) postgresAnswers(ctx context.Context) error {
	if confirmed, _ := a.charge.known(); a.InCharge() && time.Since(confirmed) < answerTime {
		return nil
	}
	_, err := loop.Await(ctx, a.patience, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, health.Answers(ctx, a.ledger.DB())
	})
	return err
}

func (a *Agent) lookAtPostgres(ctx context.Context) error {
	if err := a.postgresAnswers(ctx); err != nil {
		return unprepared(fmt.Errorf("PostgreSQL at %s, port %d: %w",
			a.config.PostgresHost, a.config.PostgresPort, setup.Explained(err)))
	}
	return nil
}

// lookAtSetup leaves it to others to say that PostgreSQL does not answer.
func (a *Agent) lookAtSetup(ctx context.Context) error {
	if err := setup.CheckPrepared(ctx, a.ledger.DB()); a.InCharge() && errors.Is(err, setup.ErrUnprepared) {
		return err
	}
	return nil
}

func (a *Agent) lookAtProtocol(context.Context) error { return a.server.OtherProtocol() }

func (a *Agent) lookAtPooler(context.Context) error {
	if seen := a.poolerSeen.Load(); seen != nil && errors.Is(*seen, pooler.ErrLeaving) {
		return health.Find(core.PoolerLeaving, (*seen).Error())
	} else if hangs := a.poolerHangs.Load(); hangs != nil {
		return health.Find(core.PoolerHangs, hangs.String())
	} else if seen != nil && errors.Is(*seen, pooler.ErrUnreachable) {
		return *seen
	}
	// That PgBouncer was not there for a reload is no longer so.
	if err := a.pooler.LastReload(); errors.Is(err, pooler.ErrNotTakenOver) || errors.Is(err, pooler.ErrUnwritable) {
		return health.Find(core.ReloadRefused, err.Error())
	}
	return nil
}

func (a *Agent) enterOutside(ctx context.Context) error {
	err := a.pooler.EnterOutside(ctx)
	if errors.Is(err, pooler.ErrCertificateEnded) {
		return health.Find(core.CertificateEnded, err.Error())
	}
	return err
}

func (a *Agent) lookAtDump(ctx context.Context) error {
	found, err := a.config.dumpTool().Version(ctx)
	if err != nil {
		return fmt.Errorf("no backup can be made: %w", err)
	}
	if server, known := a.programs.Known(floors.PostgreSQL); known {
		if err := found.Dumps(server); err != nil {
			return err
		}
	}
	return a.config.Versions.Judge(found).Admit()
}

// writeBackups writes as a backup would. The folder is made by the agent in charge.
func (a *Agent) writeBackups(ctx context.Context) error {
	if !a.InCharge() {
		return nil
	}
	return a.files.Try(ctx)
}

func (a *Agent) disks(ctx context.Context) (all []Disk, err error) {
	for _, d := range []struct{ of, folder string }{{"data", a.config.DataDir}, {"backups", a.config.BackupDir}} {
		u, err := health.UsageOf(ctx, d.folder)
		if err != nil {
			return nil, err
		}
		all = append(all, Disk{
			Of: d.of, Size: u.Size, Free: u.Free, Reserve: a.files.Reserve(), Files: u.Files, FilesFree: u.FilesFree,
		})
	}
	return all, nil
}

func lookForRoom(disks []Disk) error {
	list := make([]core.Disk, len(disks))
	for i, d := range disks {
		list[i] = core.Disk{Of: d.Of, Free: d.Free, Reserve: d.Reserve}
	}
	if reason, cramped := core.Cramped(list); cramped {
		return health.Find(reason.Code, reason.Message)
	}
	return nil
}

func (a *Agent) lookWhetherOversold(c ledger.Capacity) error {
	if c.Oversold() == 0 {
		return nil
	}
	return health.Find(core.Oversold, fmt.Sprintf("the databases can take %d connections and PostgreSQL has %d for them: set "+
		"max_connections to %d or more", c.Sold, c.ForDatabases(), c.MaxFor(c.Sold)))
}

// lookAtCommons also succeeds where another agent is in charge.
func (a *Agent) lookAtCommons(context.Context) error {
	if !a.InCharge() {
		return nil
	}
	return a.commons.Fresh()
}

// lookAtMemory has nothing to keep where the agent cannot see PgBouncer's process, which is no fault.
func (a *Agent) lookAtMemory(ctx context.Context) error {
	var found *int64
	if m, known := a.pooler.Memory(ctx); known {
		found = &m.Resident
	}
	a.kept.memory.Store(found)
	return nil
}

// longWait is how long a client may wait for a server connection before that is a reason. PgBouncer ends it after 30 s.
const longWait = 10 * time.Second

func lookAtWaits(w Waits) error {
	if w.Longest < longWait {
		return nil
	}
	return health.Find(core.ClientsWaiting, fmt.Sprintf("%d clients wait for a server connection, the first for %s: their "+
		"databases have all connections of their caps in use", w.Clients, w.Longest.Round(time.Second)))
}

// handedOver is how long WAL may wait to be handed over, without that the agent has been asked to store it.
const handedOver = 2 * time.Minute

func (a *Agent) lookAtArchive(context.Context) error {
	if !a.InCharge() {
		return nil
	}
	s := a.archive.Standing()
	a.kept.archive.Store(&s)
	since, why := s.Since, s.Trouble
	if s.Ready && why == "" && !s.Oldest.IsZero() && time.Since(s.Oldest) > handedOver {
		since, why = s.Oldest, "PostgreSQL has not handed it over; its log says why archive_command fails"
	}
	switch {
	case !s.Ready && s.Wrong != "":
		return health.Find(core.ArchiveNotReady, s.Wrong)
	case why != "":
		return health.Find(core.ArchiveFailing, fmt.Sprintf("WAL has waited to be stored since %s: %s; %s wait, and %s are free",
			since.UTC().Format(time.RFC3339), why, core.Pretty(s.Waiting), core.Pretty(s.Free)))
	case s.Ready && s.Wrong != "":
		return health.Find(core.ArchiveFailing, s.Wrong)
	}
	return nil
}

func (a *Agent) lookForGap(context.Context) error {
	if s := a.kept.archive.Load(); s != nil && s.Broken {
		return health.Find(core.ArchiveGap, fmt.Sprintf("segments of WAL are missing after the copy of %s: what was written after "+
			"them cannot be had back before the server is copied again, which is under way", s.Copied.UTC().Format(time.RFC3339)))
	}
	return nil
}
