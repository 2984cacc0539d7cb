package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// listed is the list of a viewer.
func listed(v database.Viewer, of database.Listing) func(context.Context, ports.Tx, ports.Page) ([]database.Listed, error) {
	return func(ctx context.Context, tx ports.Tx, p ports.Page) ([]database.Listed, error) {
		return tx.Databases().Visible(ctx, v, of, p)
	}
}

// shelf are the databases of two accounts, of which one's owner is a member of some of the other's, and who looks at them.
type shelf struct {
	*world
	records []database.Record
	backups map[id.DatabaseID]time.Time
	viewers []database.Viewer
	seen    map[database.Viewer][]database.Listed // by viewers so far, without their backups
}

// displayed are names of databases, and lookedFor texts in these, with what means something to patterns, and letters that only
// Unicode folds.
var (
	displayed = []string{"Shop", "100% shop", "sh_p", "Läden", "LÄDEN 🛒", `back\slash`, "\u212aiosk", "Kiosk"}
	lookedFor = []string{"", "", "", "shop", "SHOP", "0% S", "_", "%", `\`, "lä", "k", "-1", "\u212a"}
)

func newShelf(w *world) *shelf {
	bob, theirs := w.addAccount("bob@example.com")
	s := &shelf{world: w, backups: map[id.DatabaseID]time.Time{}, seen: map[database.Viewer][]database.Listed{}}
	statuses, environments := database.Statuses, append(database.Production.Values(), "")
	for i := range 42 {
		r := w.addDatabase(fmt.Sprintf("%c-%02d-shop", 'a'+i*5%7, i), func(r *database.Record) {
			r.DisplayName, r.Status = displayed[i%len(displayed)], statuses[i*3%len(statuses)]
			r.Environment = environments[i%len(environments)]
			r.CreatedAt, r.SizeBytes = minutes(i/4), int64(i*i%5)<<(i%50)
			if i%3 == 0 {
				r.AccountID = theirs.ID
			}
		})
		if i%6 == 0 {
			w.addMember(r.ID, w.user, []account.Standing{account.Admin, account.Viewer}[i/6%2], 0)
		}
		s.records = append(s.records, r)
		s.backUp(r.ID, i)
	}
	bound := []id.DatabaseID{s.records[0].ID, s.records[1].ID, s.records[3].ID, s.records[12].ID}
	for _, k := range []account.Key{
		w.addKey(account.FullAccount, w.account), w.addKey(account.SelectedDatabases, w.account, bound...),
		{Scope: account.FullAccount}, // of a worker
	} {
		s.viewers = append(s.viewers, database.Viewer{AccountID: w.account.ID, UserID: w.user.ID, KeyID: k.ID, Scope: k.Scope})
	}
	ada, his := w.addSession(w.user.ID, 0), w.addSession(bob.ID, 0)
	s.viewers = append(s.viewers, database.Viewer{AccountID: w.account.ID, UserID: w.user.ID, SessionID: ada.ID},
		database.Viewer{AccountID: theirs.ID, UserID: bob.ID, SessionID: his.ID})
	return s
}

// backUp gives a database backups, of which the newest ones do not count.
func (s *shelf) backUp(db id.DatabaseID, i int) {
	for n := range i % 4 {
		b := s.addBackup(db, minutes(10*i+n), func(b *backup.Backup) {
			if n < 2 || i%8 == 3 {
				b.VerifiedAt = new(minutes(500))
			}
		})
		if i%8 == 3 && n == 2 {
			s.mark(db, b.Filename, minutes(600))
		} else if b.VerifiedAt != nil {
			s.backups[db] = b.CreatedAt
		}
	}
}

// of draws a listing.
func (s *shelf) of(t *rapid.T) (of database.Listing) {
	of.Text = rapid.SampledFrom(lookedFor).Draw(t, "text")
	of.Statuses = rapid.SliceOfDistinct(rapid.SampledFrom(database.Statuses), rapid.ID).Draw(t, "statuses")
	if rapid.IntRange(0, 3).Draw(t, "any environment") == 0 {
		of.Environment = new(rapid.SampledFrom(append(database.Production.Values(), "")).Draw(t, "environment"))
	}
	of.Whose = rapid.SampledFrom([]database.Whose{"", "", database.Own, database.Shared}).Draw(t, "whose")
	of.By = rapid.SampledFrom([]database.Order{database.ByCreation, database.ByName, database.BySize}).Draw(t, "by")
	of.Descending, of.Backups = rapid.Bool().Draw(t, "descending"), rapid.Bool().Draw(t, "backups")
	return of
}

// sees are the databases that exist for a viewer, one at a time.
func (s *shelf) sees(ctx context.Context, tx ports.Tx, v database.Viewer) ([]database.Listed, error) {
	if list, known := s.seen[v]; known {
		return list, nil
	}
	var list []database.Listed
	for _, r := range s.records {
		record, standing, err := access.See(ctx, tx, v, r.ID)
		if err == nil {
			list = append(list, database.Listed{Record: record, Standing: standing})
		} else if !sameError(err, ports.ErrNoRow) {
			return nil, err
		}
	}
	s.seen[v] = list
	return list, nil
}

// want is the list by the core's rules alone.
func (s *shelf) want(ctx context.Context, tx ports.Tx, v database.Viewer, of database.Listing) ([]database.Listed, error) {
	all, err := s.sees(ctx, tx, v)
	if err != nil {
		return nil, err
	}
	var list []database.Listed
	for _, shown := range all {
		if !of.Has(shown.Record, shown.Standing) {
			continue
		}
		if at, backedUp := s.backups[shown.ID]; backedUp && of.Backups {
			shown.VerifiedBackupAt = &at
		}
		list = append(list, shown)
	}
	slices.SortFunc(list, func(a, b database.Listed) int {
		by := map[database.Order]int{
			database.ByCreation: a.CreatedAt.Compare(b.CreatedAt), database.ByName: cmp.Compare(a.Name, b.Name),
			database.BySize: cmp.Compare(a.SizeBytes, b.SizeBytes),
		}[of.By]
		if by = cmp.Or(by, cmp.Compare(a.ID, b.ID)); of.Descending {
			return -by
		}
		return by
	})
	return list, nil
}

// listingsHold draws who looks for what, and reads it in pages.
func listingsHold(w *world) {
	s := newShelf(w)
	rapid.Check(w.T, func(t *rapid.T) {
		v, of, limit := rapid.SampledFrom(s.viewers).Draw(t, "viewer"), s.of(t), rapid.IntRange(0, 9).Draw(t, "limit")
		v.Deleted = rapid.Bool().Draw(t, "deleted")
		err := w.Store.View(w.Context(), func(ctx context.Context, tx ports.Tx) error {
			want, err := s.want(ctx, tx, v, of)
			if err != nil {
				return err
			}
			got, err := s.inPages(ctx, t, tx, v, of, limit)
			if diff := gocmp.Diff(want, got); diff != "" {
				t.Errorf("%+v of %+v by %d (-want +got):\n%s", of, v, limit, diff)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

func (s *shelf) inPages(
	ctx context.Context, t *rapid.T, tx ports.Tx, v database.Viewer, of database.Listing, limit int,
) (all []database.Listed, _ error) {
	p := ports.Page{Limit: limit}
	for {
		page, err := tx.Databases().Visible(ctx, v, of, p)
		if all = append(all, page...); err != nil || limit == 0 || len(page) < limit {
			return all, err
		}
		if len(page) > limit || len(all) > len(s.records) {
			t.Fatalf("a page of %d has %d entries, all have %d", limit, len(page), len(all))
		}
		if p.After, err = ports.ParseCursor(ports.PlaceIn(of, page[limit-1].Record).Cursor()); err != nil {
			return all, err
		}
	}
}
