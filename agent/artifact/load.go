package artifact

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/pgherd/pgherd/agent/dumpsql"
	"github.com/pgherd/pgherd/agent/pg"
	"github.com/pgherd/pgherd/agent/sidecar"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

// restoring is for copies that are to become databases.
var restoring = copyPurpose{name: "restore", untilClosed: true}

// LoadRequest describes a copy of a backup that is to become a database.
type LoadRequest struct {
	OperationID id.OperationID
	DatabaseID  id.DatabaseID // that the copy is to become
	Database    string        // its name in PostgreSQL
	Owner       string        // the role to which everything belongs that is nobody's else
	Account     id.AccountID  // whose it is; empty where that is not known

	Source         id.DatabaseID // whose backup it is
	Filename       backup.Filename
	ManifestSHA256 string // of the manifest beside the file; empty: any

	Upload UploadedFile // what is loaded instead of a backup, where it has an ID

	// Names are what roles of the source are called in the copy, by their names there. All others of the server's keep theirs in a
	// copy of the database's own backup; in one of another database's they are no roles of the copy.
	Names map[string]string
	Rows  bool // compare the contents of tables and large objects too
}

// Loaded is a copy that is whole and proved.
type Loaded struct {
	SizeBytes int64    `json:"sizeBytes"`
	Notes     []string `json:"notes,omitempty"` // what the backup has and the copy has not
}

// The stages of a load, as an operation shows them.
const (
	StageWaiting   = "waiting" // for its turn, or for room on a disk
	StageLoading   = "loading"
	StageComparing = "comparing"
	StageGranting  = "granting"
)

// LoadPoints names the moments at which tests crash a load, in their order.
var LoadPoints = []string{
	"restore.reserved", "restore.role-created", "restore.database-created", "restore.loaded", "restore.compared", "restore.shut",
	"restore.granted", "restore.proving", "restore.proved", "restore.ready",
}

// Load makes the copy. One that is whole is found again; anything unfinished is removed first. The copy keeps, as its mark, a
// role without log-in to which nothing in it refers.
//
// Errors: BACKUP_NOT_FOUND, BACKUP_NOT_VERIFIED (what is restored from the file is not what its manifest and its sidecar say, or
// cannot be restored within its bounds), BACKUP_STORAGE_FULL. After any other error the outcome is open: call Load again.
func (b *Backuper) Load(ctx context.Context, req LoadRequest, progress Progress) (Loaded, error) {
	done, err := b.turn(ctx, req.OperationID)
	if err != nil {
		return Loaded{}, err
	}
	defer done()
	if loaded, ready, err := b.loaded(ctx, req.OperationID); err != nil || ready {
		return loaded, err
	}
	set, err := b.openSource(ctx, req)
	if err != nil {
		return Loaded{}, err
	}
	defer set.close()
	c := b.claim(Request{OperationID: req.OperationID, DatabaseID: req.DatabaseID, Database: req.Database}, rising(progress))
	c.waiting, c.account, c.quota = StageWaiting, req.Account, req.Upload.MaxBytes
	defer c.end(ctx)
	if err := c.reserveLoad(ctx, set.size); err != nil {
		return Loaded{}, noRoomToLoad(err)
	}
	b.Crash("restore.reserved")
	var loaded Loaded
	err = c.onceMore(ctx, func() (err error) {
		loaded, err = b.load(ctx, c, req, set)
		return err
	})
	if set.uploaded {
		err = ofUpload(err)
	}
	return loaded, noRoomToLoad(err)
}

// openSource opens what is loaded.
func (b *Backuper) openSource(ctx context.Context, req LoadRequest) (*fileSet, error) {
	if req.Upload.ID != "" {
		return b.openUploaded(ctx, req)
	}
	return b.openSet(req)
}

func noRoomToLoad(err error) error {
	if asNoRoom(err) != nil || fault.Has(err, fault.BackupStorageFull) {
		return fault.Wrap(err, fault.BackupStorageFull, "the server has no room for the database that is restored")
	}
	return err
}

// load makes the copy from nothing. What is left after an error is removed.
func (b *Backuper) load(ctx context.Context, c *claim, req LoadRequest, set *fileSet) (loaded Loaded, err error) {
	err = b.cfg.with(b.cfg.Maintenance, req.OperationID, func(admin *sql.DB) (err error) {
		copied := b.copyFor(restoring, req.OperationID, req.DatabaseID, admin)
		remove := func(ctx context.Context) error { return b.removeAll(ctx, copied, func(string) {}) }
		if err := remove(ctx); err != nil {
			return err
		}
		defer func() {
			if err != nil {
				err = errors.Join(err, b.cfg.cleanUp(ctx, remove))
			}
		}()
		began, err := recovered(ctx, admin)
		if err != nil {
			return err
		}
		limited, cancel := b.limitLoad(ctx, set)
		defer cancel()
		if err := copied.create(limited, set.manifest.Contents.Locale, b.crashLoad); err != nil {
			return err
		}
		err = c.copying(limited, copied, func(ctx context.Context) (err error) {
			loaded, err = b.fill(ctx, c, copied, req, set)
			return err
		})
		if err == nil {
			return copied.keep(ctx, req.Account, &loaded, began)
		}
		return unlessRecovered(ctx, admin, began, unverifiedInTime(limited, err))
	})
	if err == nil {
		b.Crash("restore.ready")
	}
	return loaded, err
}

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
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
	defer cancel()
	if at, unseen := recovered(ctx, admin); unseen != nil || !at.Equal(began) {
		return fmt.Errorf("PostgreSQL went down while the copy was made: %v", err) //nolint:errorlint // it means nothing any more
	}
	return err
}

// crashLoad are the points of a verification that a load has too.
func (b *Backuper) crashLoad(point string) {
	b.Crash("restore." + strings.TrimPrefix(point, "backup.verify."))
}

// fill makes of an empty copy the database that the backup was made of, and proves it.
func (b *Backuper) fill(
	ctx context.Context, c *claim, copied *isolated, req LoadRequest, set *fileSet,
) (loaded Loaded, err error) {
	if set.uploaded {
		return b.fillUploaded(ctx, c, copied, req, set)
	}
	m := set.manifest.Manifest
	if err := b.restoreSet(ctx, copied, set, share(c.progress, StageLoading, 0, loadShare)); err != nil {
		return loaded, err
	}
	b.Crash("restore.loaded")
	c.progress(StageComparing, loadShare, command.Bytes{})
	if err := b.compare(ctx, copied, m, req.Rows, share(c.progress, StageComparing, loadShare, 99-loadShare)); err != nil {
		return loaded, err
	}
	b.Crash("restore.compared")
	c.progress(StageGranting, 99, command.Bytes{})
	made, err := b.handOver(ctx, copied, req, set, b.crashLoad)
	if err != nil {
		return loaded, err
	}
	b.Crash("restore.proved")
	loaded.Notes = notes(made.DroppedPolicies)
	return loaded, nil
}

// notes tell of the policies that the copy has not: of as many as a report may have.
func notes(dropped []string) (list []string) {
	for i, p := range dropped {
		if i == command.MostNotes-1 && len(dropped) > command.MostNotes {
			return append(list, fmt.Sprintf("and so were %d more policies", len(dropped)-i))
		}
		list = append(list, "policy "+p+" was left out: the database has none of its roles")
	}
	return list
}

// loadShare is the file's share of the progress; the comparison has the rest.
const loadShare = 90

// standingFor are the roles of the copy. The server's are read once the copy is loaded: later ones have nothing in it.
func standingFor(ctx context.Context, admin *sql.DB, req LoadRequest) (sidecar.Roles, error) {
	if req.Source != req.DatabaseID {
		return sidecar.Roles{Owner: req.Owner, Names: req.Names}, nil
	}
	roles, err := sidecar.Standing(ctx, admin, req.Owner)
	maps.Copy(roles.Names, req.Names)
	return roles, err
}

// restoreSet restores the file of an open set.
func (b *Backuper) restoreSet(ctx context.Context, copied *isolated, set *fileSet, tell part) error {
	if err := set.rewind(set.data); err != nil {
		return err
	}
	m := set.manifest.Manifest
	return b.restoreBy(ctx, copied, m, func(consume consumer) error { return readFile(set.data, set.size, m, tell, consume) })
}

// DiscardLoad removes what a load has made: a copy that was switched to stays. The load must not be running.
func (b *Backuper) DiscardLoad(ctx context.Context, op id.OperationID) error {
	done, err := b.turn(ctx, op)
	if err != nil {
		return err
	}
	defer done()
	return b.cfg.with(b.cfg.Maintenance, op, func(admin *sql.DB) error {
		copied := b.copyFor(restoring, op, "", admin)
		if replaced, err := replacedBy(ctx, admin, copied.name()); err != nil || replaced != 0 {
			return err
		}
		return b.removeAll(ctx, copied, func(string) {})
	})
}

// AbandonLoad ends a load of which so many attempts were cut short. It removes what they left, and runs nothing of the
// customer's. The error is a *CutShortError, unless the copy is whole.
func (b *Backuper) AbandonLoad(ctx context.Context, op id.OperationID, attempts int, last error) (Loaded, error) {
	if loaded, ready, err := b.loaded(ctx, op); err != nil || ready {
		return loaded, err
	}
	if err := b.DiscardLoad(ctx, op); err != nil {
		return Loaded{}, err
	}
	return Loaded{}, cutShort("restore", attempts, last)
}

// CheckLoad returns BACKUP_NOT_FOUND where there is nothing to load, and no copy either.
func (b *Backuper) CheckLoad(ctx context.Context, req LoadRequest) error {
	err := b.checkSource(ctx, req)
	if err == nil {
		return nil
	}
	if _, ready, unknown := b.loaded(ctx, req.OperationID); ready || unknown != nil {
		return unknown
	}
	return err
}

func (b *Backuper) checkSource(ctx context.Context, req LoadRequest) error {
	if req.Upload.ID != "" {
		return b.checkUploaded(ctx, req)
	}
	file, _, err := b.store.Open(req.Source, req.Filename)
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
