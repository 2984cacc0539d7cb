package database_test

import (
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
)

func TestStandingOn(t *testing.T) {
	type (
		viewer = database.Viewer
		record = database.Record
		ties   = database.Ties
	)
	mine := record{AccountID: "a", Status: database.Active}
	preview := record{AccountID: "a", NamespaceID: "n", Status: database.Active}
	theirs := record{AccountID: "b", Status: database.Active}
	in := func(s database.Status, r record) record { r.Status = s; return r }
	full := viewer{AccountID: "a", UserID: "u", KeyID: "k", Scope: account.FullAccount}
	selected := viewer{AccountID: "a", UserID: "u", KeyID: "k", Scope: account.SelectedDatabases}
	ci := viewer{AccountID: "a", UserID: "u", KeyID: "k", Scope: account.SelectedDatabases, NamespaceID: "n"}
	ada := viewer{AccountID: "a", UserID: "u", SessionID: "s"}
	worker := viewer{AccountID: "a", Scope: account.FullAccount}
	seeingDeleted := func(v viewer) viewer { v.Deleted = true; return v }
	open, guest := ties{SessionOpen: true}, ties{SessionOpen: true, Member: account.Viewer}
	valid, bound := ties{KeyValid: true}, ties{KeyValid: true, Bound: true}
	member := ties{KeyValid: true, Bound: true, Member: account.Developer}
	for name, c := range map[string]struct {
		v    viewer
		r    record
		t    ties
		want account.Standing // empty: not seen
	}{
		"a full-account key":                           {full, mine, valid, account.Owner},
		"its preview":                                  {full, preview, valid, account.Owner},
		"that is being deleted":                        {full, in(database.Deleting, mine), valid, account.Owner},
		"that is deleted":                              {full, in(database.Deleted, mine), valid, ""},
		"that is deleted, for who sees these":          {seeingDeleted(full), in(database.Purging, mine), valid, account.Owner},
		"another account's":                            {full, theirs, member, ""},
		"a key that is revoked or gone":                {full, mine, ties{Bound: true, Member: account.Admin}, ""},
		"no key":                                       {worker, mine, ties{}, account.Owner},
		"no key, another account's":                    {worker, theirs, ties{}, ""},
		"a selected-database key":                      {selected, mine, bound, account.Owner},
		"of the owner, who is a member, too":           {selected, mine, member, account.Owner},
		"that is not bound":                            {selected, mine, ties{KeyValid: true, Member: account.Admin}, ""},
		"of a member":                                  {selected, theirs, member, account.Developer},
		"of somebody who is none":                      {selected, theirs, bound, ""},
		"selected, being deleted":                      {selected, in(database.Deleting, mine), bound, ""},
		"selected, deleted, for who sees these":        {seeingDeleted(selected), in(database.Deleted, mine), bound, ""},
		"selected and revoked":                         {selected, mine, ties{Bound: true}, ""},
		"a person":                                     {ada, mine, open, account.Owner},
		"a person, a preview":                          {ada, preview, open, account.Owner},
		"a person, a deleted database":                 {ada, in(database.Deleted, mine), open, ""},
		"a person, a deleted one, to recover it":       {seeingDeleted(ada), in(database.Deleted, mine), open, account.Owner},
		"a member":                                     {ada, theirs, guest, account.Viewer},
		"a member, of what is being deleted":           {ada, in(database.Deleting, theirs), guest, ""},
		"a member, of what is deleted":                 {seeingDeleted(ada), in(database.Deleted, theirs), guest, ""},
		"a person who is no member":                    {ada, theirs, open, ""},
		"a person whose session has ended":             {ada, mine, ties{Member: account.Admin}, ""},
		"a member whose session has ended":             {ada, theirs, ties{Member: account.Admin}, ""},
		"a CI key":                                     {ci, preview, valid, account.Owner},
		"a CI key, no preview":                         {ci, mine, bound, ""},
		"a CI key, another account's preview":          {ci, record{AccountID: "b", NamespaceID: "n"}, member, ""},
		"a CI key, another namespace's":                {ci, record{AccountID: "a", NamespaceID: "m"}, valid, ""},
		"a CI key, a deleted preview":                  {ci, in(database.Deleted, preview), valid, ""},
		"a CI key, a deleted preview, for who sees it": {seeingDeleted(ci), in(database.Deleted, preview), valid, account.Owner},
	} {
		standing, sees := c.v.StandingOn(c.r, c.t)
		if sees != (c.want != "") || sees && standing != c.want {
			t.Errorf("%s: %q, %t; want %q", name, standing, sees, c.want)
		}
	}
}

// Who acts for a suspended account is told why, and others are not.
func TestServed(t *testing.T) {
	suspended := account.Suspension{SuspendedAt: &time.Time{}, SuspendedFor: "unpaid"}
	mine, theirs := database.Record{AccountID: "a"}, database.Record{AccountID: "b"}
	in := func(r database.Record) database.Record { r.Suspension = suspended; return r }
	own := database.Ties{OwnSuspendedFor: "abuse"}
	key, person := database.Viewer{AccountID: "a", KeyID: "k"}, database.Viewer{AccountID: "a", SessionID: "s"}
	for name, c := range map[string]struct {
		v    database.Viewer
		r    database.Record
		t    database.Ties
		want string // of the message; empty: served
	}{
		"a key":                                 {key, mine, database.Ties{}, ""},
		"of a suspended account":                {key, in(mine), database.Ties{}, "unpaid"},
		"a person, another's database":          {person, theirs, database.Ties{}, ""},
		"of a suspended account, another's":     {person, theirs, own, "abuse"},
		"another's, of a suspended account":     {person, in(theirs), database.Ties{}, "the database belongs to"},
		"a key, another's, of a suspended one":  {key, in(theirs), database.Ties{}, "the database belongs to"},
		"both suspended":                        {person, in(theirs), own, "abuse"},
		"the service, of a suspended account's": {database.Viewer{AccountID: "a"}, in(mine), database.Ties{}, ""},
	} {
		switch err := c.v.Served(c.r, c.t); {
		case c.want == "" && err == nil:
		case !fault.Has(err, fault.AccountSuspended) || c.want == "" || !strings.Contains(err.Error(), c.want):
			t.Errorf("%s: %v", name, err)
		}
	}
}
