//go:build linux

package soak

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pgherd/pgherd/acceptance/soak/model"
	"github.com/pgherd/pgherd/acceptance/soak/plan"
	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/recovery"
)

// backupsRestore: every verified backup is downloaded, loads into a bare database by psql, and holds what it must.
func (r *run) backupsRestore(ctx context.Context) error {
	var wrong error
	for _, t := range r.all(plan.Database, plan.Single) {
		if t.known() == "" || r.facts.Is(t.fact(status), string(database.Deleted)) {
			continue
		}
		known := map[string]model.Contents{}
		for _, b := range r.all(plan.Backup) {
			if b.in == t && b.contents != nil {
				known[b.known()] = *b.contents
			}
		}
		for b, err := range r.client(t.account, 0).Backups.List(t.database()).All(ctx) {
			if refused(err) {
				break
			}
			if err == nil && b.VerifiedAt != nil {
				held, of := known[string(b.Filename)]
				if !of { // daily, or one whose answer was lost
					held = t.rows.Ever()
				}
				err = r.restores(ctx, t, b, held)
			}
			if err != nil {
				wrong = errors.Join(wrong, fmt.Errorf("backup %s of %s (step %d): %w", b.Filename, t.name, t.step, err))
			}
		}
	}
	return wrong
}

// bare is the database into which backups are loaded, on the server of the metadata.
const bare = "soak_restored"

// restores loads a backup, and compares its rows.
func (r *run) restores(ctx context.Context, t *thing, b wire.Backup, held model.Contents) error {
	file, err := r.client(t.account, 1).Backups.Download(ctx, t.database(), b.Filename)
	if err != nil {
		return err
	}
	stored, err := io.ReadAll(file)
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	if int64(len(stored)) != b.SizeBytes {
		return fmt.Errorf("it has %d bytes, and is counted %d", len(stored), b.SizeBytes)
	}
	dump, err := plain(bytes.NewReader(stored))
	if err != nil {
		return err
	}
	for _, statement := range []string{"DROP DATABASE IF EXISTS " + bare, "CREATE DATABASE " + bare + " TEMPLATE template0"} {
		if _, err := asks(ctx, r.first.Metadata.URL("postgres"), statement); err != nil {
			return err
		}
	}
	psql := exec.CommandContext(ctx, r.first.PsqlPath(), "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", r.first.Metadata.URL(bare))
	psql.Stdin = bytes.NewReader(dump)
	if out, err := psql.CombinedOutput(); err != nil {
		return fmt.Errorf("psql: %w: %s", err, out)
	}
	db, err := sql.Open("postgres", r.first.Metadata.URL(bare))
	if err != nil {
		return err
	}
	defer db.Close()
	read, err := rowsOf(ctx, db, table)
	if err != nil {
		return err
	}
	return held.Compare(read)
}

// moments is how many random seconds are had back after each round.
const moments = 10

// momentsRestore: databases as they were at random seconds are cloned, hold what they must, and are deleted.
func (r *run) momentsRestore(ctx context.Context) error {
	var candidates []*thing
	for _, t := range r.all(plan.Database, plan.Single) {
		if t.known() != "" && r.active(ctx, t) {
			candidates = append(candidates, t)
		}
	}
	if len(candidates) == 0 {
		return nil // a plan that was made smaller has deleted them all
	}
	type look struct {
		number int
		share  float64
	}
	looks := map[*thing][]look{}
	for n := range moments {
		t := candidates[r.chance.IntN(len(candidates))]
		looks[t] = append(looks[t], look{n, r.chance.Float64()})
	}
	wrong := make([]error, moments)
	var looking errgroup.Group
	looking.SetLimit(atOnce)
	for t, list := range looks {
		looking.Go(func() error {
			for _, l := range list { // a database has one operation at a time
				if err := r.haveBack(ctx, t, l.share, fmt.Sprintf("soak-look-%d", r.looks+l.number)); err != nil {
					wrong[l.number] = fmt.Errorf("moment %d, of %s (step %d): %w", l.number+1, t.name, t.step, err)
				}
			}
			return nil
		})
	}
	_ = looking.Wait() // each error is kept
	r.looks += moments
	return errors.Join(wrong...)
}

// atOnce is of how many databases moments are looked at at a time: a server makes few clones at a time.
const atOnce = 4

// haveBack clones a database as it was at a second, after a share of the time that can be had back, and compares that.
func (r *run) haveBack(ctx context.Context, t *thing, share float64, name string) error {
	ctx, cancel := context.WithTimeout(ctx, resting)
	defer cancel()
	r.enroll(ctx, t) // its creation may have been lost, or an enrolment
	c := r.client(t.account, 0)
	var window wire.RecoveryWindow
	err := until(ctx, func() (err error) {
		window, err = c.Recovery.GetWindow(ctx, t.database())
		if err == nil && (window.From == nil || window.To == nil) { // a copy, or the archive, is not that far yet
			err = errors.New("no moment can be had back")
		}
		return err
	})
	if err != nil {
		return err
	}
	at := window.From.Add(time.Duration(share * float64(window.To.Sub(*window.From)))).Truncate(time.Second)
	if at.Before(*window.From) {
		at = secondAfter(*window.From)
	}
	for _, gap := range window.Gaps {
		if at.After(gap.From) && at.Before(gap.To) {
			at = secondAfter(gap.To)
		}
	}
	text := recovery.Text(at)
	made, err := c.Databases.Clone(ctx, t.database(), wire.CloneDatabase{Name: name, DisplayName: name, PointInTime: &text})
	if err != nil {
		return err
	}
	r.secrets.Add(made.Database.Password, "the password of a clone")
	ended, err := c.Operations.Await(ctx, made.Operation.ID, time.Second)
	if err == nil && ended.Status != operation.Succeeded {
		err = fmt.Errorf("the clone of %s is %s: %+v", text, ended.Status, ended.Error)
	}
	if err != nil {
		return err
	}
	copied := &thing{kind: plan.Database, account: t.account, name: name, id: string(made.Database.ID)}
	r.told(copied, string(database.OwnerLogin), made.Database.Username, made.Database.Password)
	read, err := r.rows(ctx, copied, copied.login(string(database.OwnerLogin)))
	if err == nil {
		if err = t.rows.Between(at, at).Compare(read); err != nil {
			err = fmt.Errorf("at %s: %w", text, err)
		}
	}
	return errors.Join(err, r.remove(ctx, copied))
}

// secondAfter is the next whole second.
func secondAfter(t time.Time) time.Time { return t.Truncate(time.Second).Add(time.Second) }

// remove deletes a clone again, and waits for that.
func (r *run) remove(ctx context.Context, t *thing) error {
	r.enroll(ctx, t)
	c := r.client(t.account, 0)
	o, err := c.Databases.Delete(ctx, t.database())
	if err != nil {
		return err
	}
	_, err = c.Operations.Await(ctx, o.Operation.ID, time.Second)
	return err
}

// refused reports whether the API has refused something.
func refused(err error) bool {
	var refusal *apiclient.Error
	return errors.As(err, &refusal) && refusal.Code != "" && refusal.Status < 500
}

func roleIDOf(t *thing) id.RoleID { return id.RoleID(t.known()) }
