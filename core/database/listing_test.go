package database_test

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
)

func TestListingHas(t *testing.T) {
	type listing = database.Listing
	shop := database.Record{
		Name: "shop-1", DisplayName: "100% Läden_K", Status: database.Active, Environment: database.Staging, SizeBytes: 7,
	}
	none, staging, other := database.Environment(""), database.Staging, database.Other
	for what, c := range map[string]struct {
		of   listing
		want bool
	}{
		"all":                         {listing{}, true},
		"the name":                    {listing{Text: "op-1"}, true},
		"the name in upper case":      {listing{Text: "SHOP"}, true},
		"the display name":            {listing{Text: "läden"}, true},
		"its end":                     {listing{Text: "_k"}, true},
		"a percent sign":              {listing{Text: "0% l"}, true},
		"the ends of both":            {listing{Text: "1100"}, false},
		"a pattern":                   {listing{Text: "s%p"}, false},
		"any character":               {listing{Text: "sh_p"}, false},
		"a letter that is not ASCII":  {listing{Text: "LÄDEN"}, false},
		"what folds to one":           {listing{Text: "\u212a"}, false},
		"a status":                    {listing{Statuses: []database.Status{database.Error, database.Active}}, true},
		"another status":              {listing{Statuses: []database.Status{database.Stopped}}, false},
		"the environment":             {listing{Environment: &staging}, true},
		"another environment":         {listing{Environment: &other}, false},
		"without an environment":      {listing{Environment: &none}, false},
		"own":                         {listing{Whose: database.Own}, true},
		"shared":                      {listing{Whose: database.Shared}, false},
		"all that, but another's":     {listing{Text: "shop", Environment: &staging, Whose: database.Shared}, false},
		"all that":                    {listing{Text: "shop", Environment: &staging, Whose: database.Own, By: database.BySize}, true},
		"its text in another's order": {listing{Text: "shop", By: database.ByName, Descending: true}, true},
	} {
		if c.of.Has(shop, account.Owner) != c.want {
			t.Errorf("%s: %t", what, !c.want)
		}
	}
	if !(listing{Whose: database.Shared}).Has(shop, account.Viewer) || (listing{Whose: database.Own}).Has(shop, account.Admin) {
		t.Error("a member's is not shared")
	}
}

func TestListingIsChecked(t *testing.T) {
	for field, of := range map[string]database.Listing{
		"text": {Text: "a\x00"}, "status": {Statuses: []database.Status{database.Deleted}},
		"environment": {Environment: new(database.Environment("x"))}, "whose": {Whose: "x"}, "sort": {By: "created"},
	} {
		if _, err := of.Checked(); !fault.Has(err, fault.ValidationError) || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	for _, bad := range []string{strings.Repeat("ä", 65), "\xff", "a\nb"} {
		if _, err := (database.Listing{Text: bad}).Checked(); !fault.Has(err, fault.ValidationError) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	good, err := database.Listing{
		Text: " " + strings.Repeat("ä", 64) + " ", Statuses: database.Active.Values(), Environment: new(database.Environment("")),
		Whose: database.Shared, By: database.BySize, Descending: true,
	}.Checked()
	if err != nil || good.Text != strings.Repeat("ä", 64) {
		t.Errorf("%q, %v", good.Text, err)
	}
}

// The keys of sizes sort as the sizes do, and are recognised; nothing else is.
func TestListingKeys(t *testing.T) {
	bySize := database.Listing{By: database.BySize}
	size := rapid.OneOf(rapid.Int64Range(0, math.MaxInt64), rapid.Int64Range(0, 20))
	rapid.Check(t, func(t *rapid.T) {
		a, b := size.Draw(t, "a"), size.Draw(t, "b")
		p, q := bySize.Key(database.Record{SizeBytes: a}), bySize.Key(database.Record{SizeBytes: b})
		if (p < q) != (a < b) || !bySize.IsKey(p) {
			t.Fatalf("%d: %s, %d: %s", a, p, b, q)
		}
	})
	for _, bad := range []string{"", "7", "-000000000000000001", "+000000000000000001", "9999999999999999999",
		"000000000000000000x"} {
		if bySize.IsKey(bad) {
			t.Errorf("%q is a size", bad)
		}
	}
	if (database.Listing{}).IsKey("shop") || !(database.Listing{}).IsKey("") {
		t.Error("a creation has a key")
	}
	if byName := (database.Listing{By: database.ByName}); !byName.IsKey("shop") || byName.IsKey("") {
		t.Error("a name is no key")
	}
}
