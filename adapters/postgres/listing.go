package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"

	sq "github.com/Masterminds/squirrel"

	"github.com/pgherd/pgherd/adapters/postgres/pgdb"
	"github.com/pgherd/pgherd/core/ascii"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/ports"
)

// sorted is an order of database.Listing: its column, and what stands before and behind every value of it.
type sorted struct{ column, least, most string }

var orders = map[database.Order]sorted{
	database.ByCreation: {"created_at", pgdb.Beginning, pgdb.End},
	database.ByName:     {`name COLLATE "C"`, "", "~"},
	database.BySize:     {"size_bytes", "-1", "9223372036854775807"},
}

// sort is the end of a SELECT about databases with this alias; its argument is the limit.
func (s sorted) sort(alias string, descending bool) string {
	direction := ""
	if descending {
		direction = " DESC"
	}
	return fmt.Sprintf("ORDER BY %[1]s.%[2]s%[3]s, %[1]s.id%[3]s LIMIT ?", alias, s.column, direction)
}

// next is the end of a WHERE about databases with this alias, for a page, and sort: its arguments are those of placeIn.
func (s sorted) next(alias string, descending bool) string {
	compare := ">"
	if descending {
		compare = "<"
	}
	return fmt.Sprintf("(%[1]s.%[2]s, %[1]s.id) %[3]s (?, ?) ", alias, s.column, compare) + s.sort(alias, descending)
}

func placeIn(of database.Listing, p ports.Page) ([]any, error) {
	by, known := orders[of.By]
	switch {
	case !known:
		return nil, fmt.Errorf("no list is sorted by %q", of.By)
	case p.After != nil && !of.IsKey(p.After.Key):
		return nil, ports.ErrCursor()
	case of.Descending:
		return pgdb.Positions(p, by.most, pgdb.LastUUID)
	}
	return pgdb.Positions(p, by.least, pgdb.FirstUUID)
}

// wanted are what a listing looks for, as a row of the FROM list; its arguments are those of wants.
const wanted = "(SELECT ?::text AS text, ?::text[] AS statuses, ?::text AS environment, ?::text AS whose) f"

func wants(of database.Listing) []any {
	text := strings.ReplaceAll(ascii.Lower(of.Text), "\n", "\a") // which no name has
	return []any{text, pgdb.Listed(of.Statuses), of.Environment, of.Whose}
}

// has is database.Listing.Has for databases with this alias, but for whose they are, and what they have to be besides. Names have
// no letters in upper case, and in the collation "C" those of ASCII alone have a lower one. The text comes first: where few have
// it, thousands are looked at.
func has(alias, also string) string {
	return fmt.Sprintf(`CASE WHEN strpos(%[1]s.searched, f.text) > 0 THEN
		(cardinality(f.statuses) = 0 OR %[1]s.status = ANY(f.statuses))
		AND (f.environment IS NULL OR %[1]s.environment = f.environment) AND %[2]s ELSE false END`, alias, also)
}

// readListed begins a SELECT of database.Listed; its arguments are those of shownTo.
func readListed() sq.SelectBuilder {
	return readDatabases().Column("CASE WHEN t.account_id = ?::uuid THEN 'owner' ELSE coalesce(" +
		"(SELECT m.role FROM memberships m WHERE m.database_id = t.id AND m.user_id = ?::uuid), '') END AS standing").
		Column("CASE WHEN ?::boolean THEN (SELECT max(b.created_at) FROM backups b WHERE b.database_id = t.id " +
			"AND b.verified_at IS NOT NULL AND b.deleting_at IS NULL) END AS verified_backup_at")
}

// shownTo are for who sees a list. A viewer without a user, such as a worker, is not a member of any database.
func shownTo(v database.Viewer, of database.Listing) []any {
	return []any{v.AccountID, orNull(v.UserID), of.Backups}
}

// listOfKey is database.Viewer.StandingOn for a list of a key; its arguments are those of shownTo, then the user, then account,
// scope, key, namespace and whether deleted databases are seen, those of wants, and those of placeIn.
func listOfKey(s sorted, descending bool) *pgdb.Statement {
	return pgdb.Define(readListed().LeftJoin("memberships m ON m.database_id = t.id AND m.user_id = ?::uuid").
		JoinClause("CROSS JOIN (SELECT ?::uuid AS account, ?::text AS scope, ?::text AS key, ?::uuid AS namespace, " +
			"?::boolean AS deleted) v").
		JoinClause("CROSS JOIN " + wanted).
		Where(`CASE WHEN v.namespace IS NOT NULL THEN
				t.account_id = v.account AND p.namespace_id = v.namespace AND (v.deleted OR NOT t.` + gone + `)
			WHEN v.scope = 'full' THEN t.account_id = v.account AND (v.deleted OR NOT t.` + gone + `)
			ELSE (t.account_id = v.account OR m.role IS NOT NULL) AND t.status <> 'deleting' AND NOT t.` + gone + `
				AND EXISTS (SELECT FROM key_databases b WHERE b.key_id = v.key AND b.database_id = t.id) END`).
		Where("(v.key = '' OR EXISTS (SELECT FROM api_keys k WHERE k.id = v.key AND k.revoked_at IS NULL))").
		Where(has("t", "true") + " AND (f.whose = '' OR (f.whose = 'own') = (t.account_id = v.account))").
		Where(s.next("t", descending)))
}

// listOfPerson is database.Viewer.StandingOn for a page of a list of a person. Own databases and those of others are found apart,
// each by an index: of those who have thousands, as of those who have one among many others'. As an array they are few to the
// planner; else it takes the limit for a part of all, and reads all databases of the installation to find them.
func listOfPerson(s sorted, descending bool) *pgdb.Statement {
	return pgdb.Define(readListed().Where(sessionOpen).Where(`t.id = ANY(ARRAY(
		(SELECT d.id FROM ` + wanted + `, databases d
			WHERE d.account_id = ?::uuid AND f.whose <> 'shared' AND ` + has("d", "(?::boolean OR NOT d."+gone+")") + `
				AND ` + s.next("d", descending) + `)
		UNION ALL
		(SELECT d.id FROM ` + wanted + `, memberships m JOIN databases d ON d.id = m.database_id
			WHERE m.user_id = ?::uuid AND d.account_id <> ?::uuid AND d.status <> 'deleting'
				AND f.whose <> 'own' AND ` + has("d", "NOT d."+gone) + ` AND ` + s.next("d", descending) + `)))`).
		Suffix(s.sort("t", descending)))
}

// listing is what a statement is made for.
type listing struct {
	by                 database.Order
	descending, person bool
}

var listings = func() map[listing]*pgdb.Statement {
	made := map[listing]*pgdb.Statement{}
	for by, s := range orders {
		for _, descending := range []bool{false, true} {
			made[listing{by, descending, false}] = listOfKey(s, descending)
			made[listing{by, descending, true}] = listOfPerson(s, descending)
		}
	}
	return made
}()

func (d databases) Visible(
	ctx context.Context, v database.Viewer, of database.Listing, p ports.Page,
) ([]database.Listed, error) {
	place, err := placeIn(of, p)
	if err != nil {
		return nil, err
	}
	args := slices.Concat(shownTo(v, of),
		[]any{orNull(v.UserID), v.AccountID, v.Scope, v.KeyID, orNull(v.NamespaceID), v.Deleted}, wants(of), place)
	if v.IsPerson() {
		args = slices.Concat(shownTo(v, of), []any{v.SessionID},
			wants(of), []any{v.AccountID, v.Deleted}, place, wants(of), []any{v.UserID, v.AccountID}, place,
			[]any{pgdb.Limit(p)})
	}
	return pgdb.All[database.Listed](ctx, d.Session, listings[listing{of.By, of.Descending, v.IsPerson()}], args...)
}
