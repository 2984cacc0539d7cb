package agent

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/pgherd/pgherd/agent/archive"
	"github.com/pgherd/pgherd/agent/backup"
	"github.com/pgherd/pgherd/agent/canary"
	"github.com/pgherd/pgherd/agent/commons"
	"github.com/pgherd/pgherd/agent/copies"
	"github.com/pgherd/pgherd/agent/databases"
	"github.com/pgherd/pgherd/agent/diskroom"
	"github.com/pgherd/pgherd/agent/drill"
	"github.com/pgherd/pgherd/agent/endless"
	"github.com/pgherd/pgherd/agent/extensions"
	"github.com/pgherd/pgherd/agent/floors"
	"github.com/pgherd/pgherd/agent/follow"
	"github.com/pgherd/pgherd/agent/forward"
	"github.com/pgherd/pgherd/agent/guard"
	"github.com/pgherd/pgherd/agent/health"
	"github.com/pgherd/pgherd/agent/heritage"
	"github.com/pgherd/pgherd/agent/inventory"
	"github.com/pgherd/pgherd/agent/jobs"
	"github.com/pgherd/pgherd/agent/ledger"
	"github.com/pgherd/pgherd/agent/logins"
	"github.com/pgherd/pgherd/agent/loop"
	"github.com/pgherd/pgherd/agent/overlay"
	"github.com/pgherd/pgherd/agent/past"
	"github.com/pgherd/pgherd/agent/peer"
	"github.com/pgherd/pgherd/agent/pooler"
	"github.com/pgherd/pgherd/agent/poolermem"
	"github.com/pgherd/pgherd/agent/relocate"
	"github.com/pgherd/pgherd/agent/resting"
	"github.com/pgherd/pgherd/agent/server"
	"github.com/pgherd/pgherd/agent/settings"
	"github.com/pgherd/pgherd/agent/sizes"
	"github.com/pgherd/pgherd/agent/statements"
	"github.com/pgherd/pgherd/agent/store"
	"github.com/pgherd/pgherd/agent/uploads"
	"github.com/pgherd/pgherd/agent/usage"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/trace"
)

// ErrSuperseded is what Run returns when another agent has taken over the server.
var ErrSuperseded = ledger.ErrSuperseded

// Agent works on one PostgreSQL server and its PgBouncer.
type Agent struct {
	config    Config
	log       *zap.Logger
	listener  net.Listener
	postgres  ledger.Server
	pooler    *pooler.Pooler
	memory    *poolermem.Watch
	ledger    *ledger.Ledger
	databases *databases.Databases
	logins    *logins.Logins
	settings  *settings.Setter
	relocate  *relocate.Relocator
	guard     *guard.Guard
	endless   *endless.Watch
	commons   *commons.Commons
	rests     *resting.Rests
	forwards  *forward.Forwards
	files     *store.Store
	room      *diskroom.Room
	archive   *archive.Archive // nil: none is kept
	heritage  *heritage.Heritage
	copies    *copies.Copies
	source    *follow.Source
	readings  *backup.Readings
	marks     *canary.Marks // nil, too
	drills    *drill.Drills
	uploads   *uploads.Uploads
	changer   *extensions.Changer
	prover    *extensions.Prover
	server    *server.Server
	admitted  *peer.Admissions
	peers     *peer.Known
	lines     *peer.Lines
	programs  *floors.Programs
	languages *floors.Languages
	sizes     *sizes.Meter
	usage     *usage.Meter
	slow      *statements.Statements

	health *health.Watch
	kept   kept
	charge charge
	seldom loop.Seldom
	// patience is for asking PostgreSQL whether it answers.
	patience *loop.Patience

	inCharge atomic.Bool
	started  chan struct{}
	replaced chan error // has the archive.ErrReplaced once there is one
	// lockedSince is since when a start fails because no lock is left.
	lockedSince time.Time

	poolerDown atomic.Bool
	poolerSeen atomic.Pointer[error] // how the last look at PgBouncer ended
	// poolerHangs is a PgBouncer that is there and does not answer; nil: it does, or is not there.
	poolerHangs atomic.Pointer[pooler.Hang]
	clients     clients
}

// New makes an agent; nothing is started or connected before Run.
func New(c Config, d Deps) (*Agent, error) {
	secrets, err := c.complete()
	if err != nil {
		return nil, err
	}
	if d.Log == nil {
		d.Log = zap.NewNop()
	}
	if d.Tracer == nil {
		d.Tracer = trace.Off{}
	}
	if c.Name != "" {
		d.Log = d.Log.With(zap.String("server", c.Name))
	}
	instance := rand.Text()
	a := &Agent{
		config: c, log: d.Log, listener: d.Listener, pooler: pooler.New(c.Pooler, c.PoolerOwner),
		postgres: ledger.Server{
			Host: c.PostgresHost, Port: c.PostgresPort, Password: secrets.AgentPassword, Instance: instance,
			Connections: c.Connections, Place: c.place(),
		},
		started: make(chan struct{}), replaced: make(chan error, 1), patience: loop.NewPatience(),
	}
	a.programs = a.newPrograms(c.dumpTool())
	a.languages = floors.NewLanguages(c.Languages, a.postgres.OfferedLanguages, a.postgres.InstalledLanguages, d.Log)
	if a.ledger, err = ledger.New(a.postgres, c.Pooler, d.Log); err != nil {
		return nil, err
	}
	a.files = store.New(c.BackupDir, store.Options{Blobs: c.blobs(), Key: a.ledger.Keys().Of, Owner: a.ledger.Installation,
		Reserve: c.BackupReserve})
	inDumps := c.sessions(secrets.AgentPassword, a.ledger.InCharge)
	a.room = diskroom.New(diskroom.Config{DataDir: c.DataDir}, inDumps, a.files, d.Log)
	a.uploads = uploads.New(a.files, a.room, d.Log)
	a.uploads.Crash = c.crash
	a.peers = peer.NewKnown()
	a.copies = copies.New(&copies.Deps{
		Server: inDumps, Tool: c.dumpTool(), Files: a.files, Room: a.room, Limits: c.BackupLimits, UploadTime: c.UploadTime,
		Peers: a.peers, Log: d.Log, Crash: c.crash,
	})
	if a.archive, err = c.newArchive(inDumps, secrets.AgentPassword, d, func(err error) { a.replaced <- err }); err != nil {
		return nil, err
	}
	a.heritage = c.newHeritage(a.archive, a.files)
	a.admitted = peer.NewAdmissions(a.ledger, a.files, d.Log)
	a.source = follow.NewSource(a.ledger, inDumps, a.freeData, d.Log)
	backups := backup.New(backup.Config{
		CountsOnly: c.BackupCountsOnly, Patience: c.BackupPatience, Now: d.Now, Size: a.size, Past: a.archive, Lost: a.heritage.Of,
		Source: a.source,
	}, a.copies)
	a.readings = backup.NewReadings(a.files, a.adopt, d.Log)
	rights := overlay.New(a.ledger)
	a.databases = databases.New(a.ledger, a.pooler)
	a.forwards = forward.New(a.ledger, c.Pooler, c.PoolerOwner, a.pooler, d.Log)
	a.rests = resting.New(a.ledger.DB(), d.Log)
	a.memory = poolermem.New(poolermem.Config{
		Console: a.pooler.Console, Pooler: c.Pooler, Bound: c.PoolerMemory, Holdings: a.databases.Holdings,
		Rests: a.rests, Log: d.Log,
	})
	a.logins = logins.New(a.ledger, rights, a.pooler, d.Log)
	a.settings = settings.New(a.ledger, a.databases, a.pooler, d.Log)
	a.relocate = relocate.New(a.ledger, rights, a.databases, a.pooler, a.source)
	a.relocate.Admitting = a.logins.Admitting
	if a.guard, err = guard.New(a.postgres, a.copies.Locks, a.rests, d.Log); err != nil {
		return nil, err
	}
	a.endless = endless.New(a.ledger.DB(), a.postgres.Open, endless.Bounds{}, d.Log)
	if a.commons, err = commons.New(a.postgres, c.Commons, a.rests, d.Log); err != nil {
		return nil, err
	}
	measured := sizes.Source{Ledger: a.ledger}
	a.sizes = sizes.New(measured.Look, measured.Measure, d.Log)
	a.slow = statements.New(a.ledger, d.Log)
	a.relocate.Replaced, a.relocate.RemoveFiles, a.relocate.AskForSweep = a.sizes.Forget, a.removeFiles, a.copies.AskForSweep
	a.ledger.Jobs.Pause, a.ledger.Jobs.Patience, a.ledger.Jobs.Tracer = c.BackupPause, c.BackupPatience, d.Tracer
	a.ledger.Jobs.Slots = jobs.NewSlots(cmp.Or(c.Jobs, jobs.DefaultSlots))
	a.admitted.Changes = peer.Changes{Of: a.followed, Dial: inDumps.Dial}
	a.lines = peer.NewLines(a.ledger, d.Log)
	a.admitted.Register()
	a.lines.Register()
	follow.NewTarget(a.ledger, a.lines)
	backups.Register(a.ledger)
	a.copies.Register(a.ledger)
	past.Register(a.ledger, a.copies.Deps, a.archive)
	a.prover = extensions.NewProver(a.ledger, a.copies, backups)
	changes := extensions.Config{LockWait: c.ExtensionLockWait, Patience: c.ExtensionPatience}
	if a.changer, err = extensions.New(changes, a.ledger, d.Log); err != nil {
		return nil, err
	}
	report := pooler.NewReport(a.pooler.Console)
	a.usage = usage.New(usage.Source{Ledger: a.ledger, Report: report}.Look, d.Log)
	a.health = health.NewWatch(&health.Collector{
		Machine: health.Host{DataDir: c.DataDir}, Maintenance: a.ledger.DB(), Pooler: report, Answers: a.postgresAnswers,
	}, d.Log, a.checks(report)...)
	listed := inventory.New(a.ledger.DB(), a.ledger.PoolerState, a.pooler, a.files, a.forwards.Failure)
	a.drills = a.newDrills()
	a.server, err = server.New(server.Config{
		Certificate: c.Certificate, Secrets: c.Secrets, Version: c.Version, Commands: a.ledger, Refusal: ledger.AsRefusal,
		InCharge: a.ready, Confirmed: a.confirmed, PoolerAnswers: a.PoolerAnswers,
		Questions: []server.Question{
			server.Answering(measured.Size), server.Answering(a.logins.InspectLogin), server.Answering(a.logins.ReadOutcome),
			server.Answering(a.databases.SetAccounts),
			server.Answering(a.sizes.Use), server.Answering(a.usage.Use), server.Answering(a.slow.SlowQueries),
			server.Answering(a.settings.Settings), server.Answering(a.ledger.Applied),
			server.Answering(a.ledger.Heard), server.Answering(a.ledger.Vouch), server.Answering(a.ledger.BackupKey),
			server.Answering(backups.HasRoom), server.Answering(a.deleteBackup), server.Opening("application/gzip", backups.Open),
			server.Opening("application/gzip", backups.OpenRest), server.Opening("application/json", backups.OpenManifest),
			server.Answering(a.source.Movable), server.Answering(a.readings.Reread), server.Answering(a.adoptBackup),
			server.Answering(peer.Reach),
			server.Answering(a.heritage.Inherit),
			server.Answering(a.drills.Ask),
			server.Answering(a.openUpload), server.Answering(a.uploads.Ask), server.Answering(a.uploads.Drop),
			server.Receiving(a.uploads.Receive, cmp.Or(c.ArrivalTime, server.ArrivalTime)),
			server.Answering(a.changer.Extensions), server.Answering(rights.Rights),
			server.Answering(listed.Databases), server.Answering(listed.Strays), server.Answering(listed.Files),
			server.Receiving(a.keepSnapshot, cmp.Or(c.ArrivalTime, server.ArrivalTime)), server.Answering(a.snapshots),
			server.Opening("application/octet-stream", a.openSnapshot),
			server.Answering(a.tryStorage), server.Answering(a.recoveryWindow), server.Answering(a.setArchiveKey),
		},
		Guests: a.admitted.Routes(),
		Health: a.health, Metrics: d.Metrics,
		NotLogical: a.source.NotLogical, PublicCA: c.Pooler.PublicCA,
		Storage: c.storage(), Archive: a.archived, Programs: a.Programs, Log: d.Log, Tracer: d.Tracer,
	})
	return a, err
}

// followed is how the changes of a database are reached that moves from here.
func (a *Agent) followed(ctx context.Context, op id.OperationID) (peer.Followed, error) {
	f, err := a.source.Of(ctx, op)
	return peer.Followed(f), err
}

// freeData is what is free on PostgreSQL's disk.
func (a *Agent) freeData() (int64, error) {
	disk, err := a.files.DiskAt(a.config.DataDir)
	return disk.Free, err
}

// newDrills makes the drills. An archive reaches back further than its window, by what is between two full copies at most.
func (a *Agent) newDrills() *drill.Drills {
	if a.archive != nil {
		a.marks = canary.New(a.ledger.DB(), a.archive.Plan.Window+a.archive.Plan.FullEvery, a.log)
	}
	return drill.New(drill.Deps{
		Archive: a.archive, Marks: a.marks, Room: a.room, Files: a.files, Jobs: a.ledger.Jobs.Slots, Limits: a.copies.Limits,
		Log: a.log, Crash: a.config.crash,
	})
}

// InCharge reports whether the agent carries out commands.
func (a *Agent) InCharge() bool { return a.inCharge.Load() }

func (a *Agent) ready() error {
	if !a.InCharge() {
		return errNotInCharge
	}
	return nil
}

var errNotInCharge = command.Refuse(command.ReasonUnavailable, "the agent is not yet in charge")

// PoolerAnswers reports whether PgBouncer answered when the agent last looked, which it does every second once it is in charge.
func (a *Agent) PoolerAnswers() bool { return !a.poolerDown.Load() }

// Forwarding says for how many databases the server sends on who still comes, and of how many of these it cannot.
func (a *Agent) Forwarding() (all, failing int) { return a.forwards.Count() }

// PoolerUsers is how many users PgBouncer holds that nobody needs any more.
func (a *Agent) PoolerUsers() (former int64) { return a.pooler.FormerUsers() }

// JobCount is how many backups and other long jobs run, and how many wait for one of Config.Jobs.
func (a *Agent) JobCount() (running, waiting int) { return a.ledger.Jobs.Slots.Count() }

// Unmeasured is how many databases could not be measured when that was last tried.
func (a *Agent) Unmeasured() (databases int) { return a.sizes.Unmeasured() }

// EndlessEnded counts what was ended that customers had PostgreSQL do without end.
func (a *Agent) EndlessEnded() endless.Counts { return a.endless.Ended() }

// Commons is what the agent last found of what all databases share, and whether that is fresh.
func (a *Agent) Commons() (found commons.Figures, fresh bool) { return a.commons.Figures() }

// Started is closed once the agent is in charge and has written PgBouncer's files. A PgBouncer that never ran before must not
// be started earlier.
func (a *Agent) Started() <-chan struct{} { return a.started }

// Run listens, takes charge of the server as soon as PostgreSQL answers, and carries out commands. It returns nil when ctx
// ends, ErrSuperseded when another agent takes over, an archive.ErrReplaced when another server has taken the place of this one,
// and a *floors.Refusal for a program with known holes or a trusted procedural language. Call it once.
func (a *Agent) Run(ctx context.Context) error {
	listener, err := a.listen()
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return a.server.Serve(ctx, listener) })
	group.Go(func() error { return a.lead(ctx) })
	group.Go(func() error { a.health.Run(ctx); return nil })
	group.Go(func() error { return a.onceInCharge(ctx, a.programs.Watch) })
	group.Go(func() error { return a.onceInCharge(ctx, a.languages.Watch) })
	err = group.Wait()
	a.admitted.Close()
	a.lines.Stop()
	a.forwards.Close()
	a.ledger.Stop()
	_, _, _, _ = a.guard.Close(), a.commons.Close(), a.room.Close(), a.changer.Close() // nothing is lost with a connection
	a.pooler.Close()
	return err
}

func (a *Agent) listen() (net.Listener, error) {
	if a.listener != nil {
		return a.listener, nil
	}
	l, err := net.Listen("tcp", a.config.Listen)
	if err != nil {
		return nil, fmt.Errorf("the agent cannot listen: %w", err)
	}
	return l, nil
}

// size is how large a database was when it was last measured.
func (a *Agent) size(ctx context.Context, db id.DatabaseID) (int64, error) {
	if bytes, known := a.sizes.Size(db); known {
		return bytes, nil
	}
	measured, err := sizes.Source{Ledger: a.ledger}.Size(ctx, command.DatabaseSize{DatabaseID: db})
	return measured.Bytes, err
}

func (a *Agent) openUpload(ctx context.Context, q command.OpenUpload) (command.Uploaded, error) {
	if _, err := a.ledger.InService(ctx, string(q.DatabaseID)); err != nil {
		return command.Uploaded{}, err
	}
	return a.uploads.Open(ctx, q)
}

// deleteBackup removes a backup, unless who asks for it may not know what has become of the database.
func (a *Agent) deleteBackup(ctx context.Context, q command.DeleteBackup) (none command.None, err error) {
	if err := a.ledger.Vouched(ctx, q.DatabaseID, ""); err != nil {
		return none, err
	}
	return none, a.files.Delete(ctx, q.DatabaseID, q.Filename)
}

// adoptBackup takes a backup over for a database that is here, from a server of which somebody has said what it has left, or from
// a peer.
func (a *Agent) adoptBackup(ctx context.Context, q command.AdoptBackup) (r command.BackupReading, err error) {
	if _, err := a.ledger.Known(ctx, string(q.DatabaseID)); err != nil {
		return r, err
	}
	if q.Lost != "" {
		if _, err := a.heritage.Of(q.Lost); err != nil {
			return r, err
		}
	}
	return a.readings.Adopt(ctx, q)
}

func (a *Agent) adopt(ctx context.Context, q command.AdoptBackup) error {
	if q.Lost == "" {
		return a.peers.Adopt(ctx, a.files, q)
	}
	return a.heritage.Adopt(ctx, q)
}

// tryTime bounds a try of the storage.
const tryTime = 15 * time.Second

func (a *Agent) tryStorage(ctx context.Context, _ command.TryStorage) (command.StorageTried, error) {
	ctx, cancel := context.WithTimeout(ctx, tryTime)
	defer cancel()
	tried := command.StorageTried{Where: a.files.Where()}
	var no *store.UnavailableError
	switch err := a.files.Try(ctx); {
	case errors.As(err, &no):
		tried.Wrong = no.Why
	case err != nil:
		tried.Wrong = err.Error()
	}
	return tried, nil
}

func (a *Agent) recoveryWindow(ctx context.Context, q command.RecoveryWindow) (w command.RecoverableTime, err error) {
	if a.archive == nil {
		_, err = a.ledger.InService(ctx, string(q.DatabaseID))
		return w, err
	}
	w.Archived = true
	w.Window, err = a.archive.Window(ctx, q.DatabaseID)
	return w, err
}

func (a *Agent) archived() *command.Archive {
	if a.archive == nil {
		return nil
	}
	return &command.Archive{KeyMark: a.archive.KeyMark()}
}

func (a *Agent) setArchiveKey(_ context.Context, q command.SetArchiveKey) (none command.None, err error) {
	if a.archive == nil {
		return none, command.Refuse(command.ReasonInvalid, "this server keeps no archive")
	}
	err = a.archive.SetKey(q.Key)
	if errors.Is(err, archive.ErrOther) {
		err = command.Refuse(command.ReasonConflict, "the archive is encrypted with another key")
	}
	return none, err
}

// removeFiles removes every file that there is of a database: its backups, with what was written and not committed, and uploads.
// Nobody must be making any of them.
func (a *Agent) removeFiles(ctx context.Context, db id.DatabaseID) error {
	return errors.Join(a.uploads.RemoveAll(ctx, db), a.files.Passing().DeleteAll(ctx, db), a.files.DeleteAll(ctx, db))
}
