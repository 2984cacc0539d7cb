package copies

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/pgherd/pgherd/agent/diskroom"
	"github.com/pgherd/pgherd/agent/dumpsql"
	"github.com/pgherd/pgherd/agent/jobs"
	"github.com/pgherd/pgherd/agent/load"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/sidecar"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/restore"
)

// restoring is for copies that are to become databases.
var restoring = copyPurpose{name: "restore", untilClosed: true}

// Request describes a copy of a backup that is to become a database.
type Request struct {
	OperationID id.OperationID
	DatabaseID  id.DatabaseID // that the copy is to become
	Database    string        // its name in PostgreSQL
	Owner       string        // the role to which everything belongs that is nobody's else
	Account     id.AccountID  // whose it is; empty where that is not known

	Source command.Source // a backup or, where it names one, an upload; it may pass at the operation's peer

	// Names are what roles of the source are called in the copy, by their names there. All others of the server's keep theirs in a
	// copy of the database's own backup; in one of another database's they are no roles of the copy.
	Names map[string]string
	Rows  bool // compare the contents of tables and large objects too
	// Moving says that what roles have stored in the database is to come along.
	Moving bool
}

// Loaded is a copy that is whole and proved.
type Loaded struct {
	SizeBytes int64          `json:"sizeBytes"`
	Notes     []string       `json:"notes,omitempty"` // what the backup has and the copy has not
	Change    restore.Change `json:"change"`
	// Whole is what a Switch of a move brings along.
	Whole *backup.Whole `json:"whole,omitempty"`
}

// The stages of a load, as an operation shows them.
const (
	StageWaiting   = "waiting" // for its turn, or for room on a disk
	StageLoading   = "loading"
	StageComparing = "comparing"
	StageGranting  = "granting"
)

// CrashPoints names the moments at which tests crash a load, in their order.
var CrashPoints = []string{
	"restore.reserved", "restore.role-created", "restore.database-created", "restore.loaded", "restore.compared", "restore.shut",
	"restore.granted", "restore.proving", "restore.proved", "restore.ready",
}

// Load makes the copy. One that is whole is found again; anything unfinished is removed first. The copy keeps, as its mark, a
// role without log-in to which nothing in it refers.
//
// Errors: BACKUP_NOT_FOUND, BACKUP_NOT_VERIFIED (what is restored from the file is not what its manifest and its sidecar say, or
// cannot be restored within its bounds), UPLOAD_INCOMPLETE, BACKUP_STORAGE_FULL. After any other error the outcome is open: call
// Load again.
func (x *Copies) Load(ctx context.Context, req Request, tell jobs.Tell) (Loaded, error) {
	done, err := x.Turn(ctx, req.OperationID)
	if err != nil {
		return Loaded{}, err
	}
	defer done()
	if loaded, ready, err := x.find(ctx, req.OperationID); err != nil || ready {
		return loaded, err
	}
	set, err := x.openSource(ctx, req)
	if err != nil {
		return Loaded{}, err
	}
	defer set.close()
	tell = jobs.Rising(tell)
	c, err := x.claim(ctx, req, set, tell)
	defer c.End()
	if err != nil {
		return Loaded{}, err
	}
	var loaded Loaded
	err = c.OnceMore(ctx, func() (err error) {
		loaded, err = x.load(ctx, c, req, set, tell)
		return err
	})
	if set.uploaded {
		err = ofUpload(err)
	}
	return loaded, noRoomToLoad(err)
}

// claim reserves room for a copy. The claim is ended also where that fails.
func (x *Copies) claim(ctx context.Context, req Request, set *fileSet, tell jobs.Tell) (*diskroom.Claim, error) {
	c := x.Room.Claim(diskroom.Work{
		OperationID: req.OperationID, DatabaseID: req.DatabaseID, Database: req.Database, Quota: req.Source.MaxBytes,
		Waits: func() { tell(StageWaiting, 0, command.Bytes{}) },
	})
	needs := func(ctx context.Context) ([]diskroom.Need, error) { return x.needs(ctx, req, set) }
	if err := c.Reserve(ctx, needs); err != nil {
		return c, noRoomToLoad(err)
	}
	x.Crash("restore.reserved")
	return c, nil
}

// openSource opens what is loaded.
func (x *Copies) openSource(ctx context.Context, req Request) (*fileSet, error) {
	switch {
	case req.Source.Upload != "":
		return x.openUploaded(ctx, req)
	case req.Source.AtPeer:
		return x.openAtPeer(ctx, req)
	}
	return x.openSet(ctx, req)
}

func noRoomToLoad(err error) error {
	if diskroom.IsFull(err) || fault.Has(err, fault.BackupStorageFull) {
		return fault.Wrap(err, fault.BackupStorageFull, "the server has no room for the database that is restored")
	}
	return err
}

// A database that is restored may be much larger than the one whose place it takes: that may have been emptied. So what it was
// when it was dumped counts too; the reservation grows with the copy where it takes more. Of an upload nobody knows that, but it
// takes at least about twice what its compressed text does. What is hardly more than repetition is compressed so well that the
// bound of such a copy must be far higher.
const (
	copyGrows     = 2
	fileGrows     = 2
	fileGrowsMost = 64
)

// extent is how large a copy will be at least, and at most.
func (s *fileSet) extent() (least, most int64) {
	if size := s.manifest.DatabaseBytes; size > 0 {
		return size, copyGrows * size
	}
	return fileGrows * s.size, fileGrowsMost * s.size
}

func (x *Copies) needs(ctx context.Context, req Request, set *fileSet) ([]diskroom.Need, error) {
	live, err := x.Room.SizeOf(ctx, req.Database)
	least, most := set.extent()
	return []diskroom.Need{{
		Purpose: diskroom.Copy, Bytes: diskroom.CopySize(max(live, least)), Most: diskroom.CopySize(max(live, most)),
		Lasting: &diskroom.Lasting{Account: req.Account},
	}}, err
}

// load makes the copy from nothing. What is left after an error is removed.
func (x *Copies) load(
	ctx context.Context, c *diskroom.Claim, req Request, set *fileSet, tell jobs.Tell,
) (loaded Loaded, err error) {
	err = x.Server.Admin(req.OperationID, func(admin *sql.DB) (err error) {
		copied := x.copyFor(restoring, req.OperationID, req.DatabaseID, admin)
		remove := func(ctx context.Context) error { return x.removeAll(ctx, copied, func(string) {}) }
		if err := remove(ctx); err != nil {
			return err
		}
		defer func() {
			if err != nil {
				err = errors.Join(err, x.Server.CleanUp(ctx, remove))
			}
		}()
		began, err := recovered(ctx, admin)
		if err != nil {
			return err
		}
		limited, cancel := x.limitLoad(ctx, set)
		defer cancel()
		if err := copied.Create(limited, set.manifest.Contents.Locale, x.crashLoad); err != nil {
			return err
		}
		err = copied.watched(limited, c, func(ctx context.Context) (err error) {
			if loaded, err = x.fill(ctx, copied, req, set, tell); err == nil {
				loaded.Change, err = x.changeOf(ctx, copied, req, set)
			}
			return err
		})
		if err == nil {
			return copied.keep(ctx, req.Account, &loaded, began)
		}
		return unlessRecovered(ctx, admin, began, unverifiedInTime(limited, err))
	})
	if err == nil {
		x.Crash("restore.ready")
	}
	return loaded, err
}

// lookTime bounds a look at what a failed attempt means.
const lookTime = 5 * time.Second

// recovered is when PostgreSQL was started or has last recovered from a crash: its checkpointer is a new one then.
func recovered(ctx context.Context, admin *sql.DB) (at time.Time, err error) {
	const query = `SELECT backend_start FROM pg_stat_activity WHERE backend_type = 'checkpointer'`
	return pg.One[time.Time](ctx, admin, query)
}

// unlessRecovered makes nothing of BACKUP_NOT_VERIFIED where PostgreSQL has crashed since: what was restored may be lost in part,
// as what a customer has written decides whether its commits wait for the disk.
func unlessRecovered(ctx context.Context, admin *sql.DB, began time.Time, err error) error {
	if !fault.Has(err, fault.BackupNotVerified) {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTime)
	defer cancel()
	if at, unseen := recovered(ctx, admin); unseen != nil || !at.Equal(began) {
		return fmt.Errorf("PostgreSQL went down while the copy was made: %v", err) //nolint:errorlint // it means nothing any more
	}
	return err
}

// crashLoad are the points of a verification that a load has too.
func (x *Copies) crashLoad(point string) {
	x.Crash("restore." + strings.TrimPrefix(point, "backup.verify."))
}

// fill makes of an empty copy the database that the backup was made of, and proves it.
func (x *Copies) fill(
	ctx context.Context, copied *Isolated, req Request, set *fileSet, tell jobs.Tell,
) (loaded Loaded, err error) {
	if set.uploaded {
		return x.fillUploaded(ctx, copied, req, set, tell)
	}
	if err := x.restoreSet(ctx, copied, set, jobs.Share(tell, StageLoading, 0, loadShare)); err != nil {
		return loaded, err
	}
	m := set.manifest.Manifest
	x.Crash("restore.loaded")
	tell(StageComparing, loadShare, command.Bytes{})
	if err := x.compare(ctx, copied, set, req.Rows, jobs.Share(tell, StageComparing, loadShare, 99-loadShare)); err != nil {
		return loaded, err
	}
	x.Crash("restore.compared")
	tell(StageGranting, 99, command.Bytes{})
	made, err := x.handOver(ctx, copied, req, set, x.crashLoad)
	if err != nil {
		return loaded, err
	}
	x.Crash("restore.proved")
	if req.Moving {
		whole := m.Whole()
		loaded.Whole = &whole
	}
	loaded.Notes, err = notes(ctx, copied.admin, req, m, made)
	return loaded, err
}

// loadShare is the file's share of the progress; the comparison has the rest.
const loadShare = 90

// standingFor are the roles of the copy. The server's are read once the copy is loaded: later ones have nothing in it.
func standingFor(ctx context.Context, admin *sql.DB, req Request) (sidecar.Roles, error) {
	if req.Source.DatabaseID != req.DatabaseID {
		return sidecar.Roles{Owner: req.Owner, Names: req.Names}, nil
	}
	roles, err := sidecar.Standing(ctx, admin, req.Owner)
	maps.Copy(roles.Names, req.Names)
	return roles, err
}

// restoreSet restores the file of an open set, all of which is known then.
func (x *Copies) restoreSet(ctx context.Context, copied *Isolated, set *fileSet, tell jobs.Part) error {
	if err := set.data.rewind(); err != nil {
		return err
	}
	var sum string
	rows, err := x.restoreBy(ctx, copied, set.manifest.Manifest, func(consume consumer) (err error) {
		sum, err = set.readFile(tell, consume)
		return err
	})
	set.counted = rows
	if err == nil && set.sidecar == nil {
		err = x.completeFromPeer(ctx, set)
	}
	if err == nil {
		err = set.isFile(sum)
	}
	return x.leftOut(ctx, copied, set.manifest.Manifest, err)
}

// Discard removes what a load has made: a copy that was switched to stays. The load must not be running.
func (x *Copies) Discard(ctx context.Context, op id.OperationID) error {
	done, err := x.Turn(ctx, op)
	if err != nil {
		return err
	}
	defer done()
	return x.Server.Admin(op, func(admin *sql.DB) error {
		copied := x.copyFor(restoring, op, "", admin)
		if replaced, err := replacedBy(ctx, admin, copied.Name()); err != nil || replaced != 0 {
			return err
		}
		return x.removeAll(ctx, copied, func(string) {})
	})
}

// Abandon ends a load of which so many attempts were cut short. It removes what they left, and runs nothing of the
// customer's. The error is a *jobs.CutShortError, unless the copy is whole.
func (x *Copies) Abandon(ctx context.Context, op id.OperationID, attempts int, last error) (Loaded, error) {
	if loaded, ready, err := x.find(ctx, op); err != nil || ready {
		return loaded, err
	}
	if err := x.Discard(ctx, op); err != nil {
		return Loaded{}, err
	}
	return Loaded{}, CutShort("restore", attempts, last)
}

// Check returns BACKUP_NOT_FOUND where there is nothing to load, and no copy either.
func (x *Copies) Check(ctx context.Context, req Request) error {
	err := x.checkSource(ctx, req)
	if err == nil {
		return nil
	}
	if _, ready, unknown := x.find(ctx, req.OperationID); ready || unknown != nil {
		return unknown
	}
	return err
}

func (x *Copies) checkSource(ctx context.Context, req Request) error {
	if req.Source.Upload != "" {
		return x.checkUploaded(ctx, req)
	}
	if req.Source.AtPeer { // it may not be there yet
		return nil
	}
	file, _, err := x.FilesOf(req.Source.Passing).Open(ctx, req.Source.DatabaseID, req.Source.Filename)
	if err != nil {
		return err
	}
	return file.Close()
}

// unsuited is BACKUP_NOT_VERIFIED for what the copy cannot become of what the sidecar says; other errors say nothing about that.
func unsuited(err error) error {
	var at *sidecar.StatementError
	var syntax *dumpsql.SyntaxError
	if errors.As(err, &at) && !passes(at.Err) || errors.As(err, &syntax) {
		return fault.Wrap(err, fault.BackupNotVerified, "owners and privileges of the backup cannot be restored: %s", err.Error())
	}
	return err
}

// differs says what is not as it was. Where the dumps are of different versions, that need not mean anything: then it says so.
func differs(list []sidecar.Difference, then, now sidecar.Origin) error {
	what := backup.Summary(list)
	if then != now {
		what += fmt.Sprintf("; the backup was written by %s, its copy by %s, and they may write the same differently", then, now)
	}
	return fault.New(fault.BackupNotVerified, "the restored database is not what was backed up: %s", what)
}

// CutShort is the error of so many attempts, the last of which has ended with an error; nil where that is not known.
func CutShort(what string, attempts int, last error) *jobs.CutShortError {
	e := &jobs.CutShortError{What: what, Attempts: attempts}
	var in *load.InterruptedError
	if errors.As(last, &in) && in.At != nil {
		e.Where = in.At.Where()
	}
	return e
}
