package account

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pgherd/pgherd/core/fault"
)

// rights is the permission table of the decisions, written a second time: by action, owner to viewer.
var rights = map[Action]string{See: "yyyy", ManageBackups: "yyyn", Configure: "yynn", Own: "ynnn"}

var standings = []Standing{Owner, Admin, Developer, Viewer}

func TestPermissionTable(t *testing.T) {
	actions := slices.Sorted(maps.Keys(Permissions))
	if want := slices.Sorted(maps.Keys(rights)); !slices.Equal(actions, want) {
		t.Fatalf("actions %v, want %v", actions, want)
	}
	for action, row := range rights {
		if len(Permissions[action]) != len(standings) {
			t.Errorf("%s: a standing is missing or too many", action)
		}
		for i, s := range standings {
			err := Permit(s, action)
			switch {
			case row[i] == 'y' && err != nil:
				t.Errorf("%s may not %s: %v", s, action, err)
			case row[i] == 'n' && !fault.Has(err, fault.Forbidden):
				t.Errorf("%s, %s: %v", s, action, err)
			}
		}
	}
}

func TestNobodyAndNothing(t *testing.T) {
	for action := range rights {
		for _, nobody := range []Standing{"", "OWNER", "root"} {
			if err := Permit(nobody, action); !fault.Has(err, fault.Forbidden) {
				t.Errorf("%q may %s", nobody, action)
			}
		}
	}
	if err := Permit(Owner, "unheard_of"); !fault.Has(err, fault.Forbidden) {
		t.Errorf("an action outside the table: %v", err)
	}
}

func TestPlans(t *testing.T) {
	cases := []struct {
		plan Plan
		api  bool
		want Quotas
	}{
		{Free, false, Quotas{
			Databases: 1, ConnectionCap: 20, BackupDays: 7, VerifyBackups: true, DatabaseBytes: 1 << 30, BackupBytes: 4 << 30,
		}},
		{Pro, true, Quotas{
			Databases: 10, ConnectionCap: 60, BackupDays: 14, VerifyBackups: true, DatabaseBytes: 20 << 30, BackupBytes: 100 << 30,
		}},
		{Business, true, Quotas{
			Databases: 100, ConnectionCap: 200, BackupDays: 30, VerifyBackups: true, DatabaseBytes: 200 << 30, BackupBytes: 2000 << 30,
		}},
	}
	for _, v := range cases {
		if p, err := ParsePlan(string(v.plan)); err != nil || p != v.plan {
			t.Errorf("%s: %s, %v", v.plan, p, err)
		}
		if v.plan.AllowsAPI() != v.api {
			t.Errorf("%s: API %v", v.plan, v.plan.AllowsAPI())
		}
		if q := (Account{Plan: v.plan}).Quotas(); q != v.want {
			t.Errorf("%s: %+v", v.plan, q)
		}
	}
	for _, s := range []string{"", "Pro", "enterprise"} {
		if _, err := ParsePlan(s); !fault.Has(err, fault.ValidationError) {
			t.Errorf("%q: %v", s, err)
		}
		if Plan(s).AllowsAPI() {
			t.Errorf("%q allows the API", s)
		}
	}
}

func TestOverridesWinOneByOne(t *testing.T) {
	number, off, hour, bytes := 3, false, time.Hour, int64(5)
	pro := planQuotas[Pro]
	cases := map[string]struct {
		with   Overrides
		change func(*Quotas)
	}{
		"none":        {Overrides{}, func(*Quotas) {}},
		"databases":   {Overrides{MaxDatabases: &number}, func(q *Quotas) { q.Databases = 3 }},
		"connections": {Overrides{ConnectionCap: &number}, func(q *Quotas) { q.ConnectionCap = 3 }},
		"backups":     {Overrides{BackupDays: &number}, func(q *Quotas) { q.BackupDays = 3 }},
		"verify":      {Overrides{VerifyBackups: &off}, func(q *Quotas) { q.VerifyBackups = false }},
		"bytes":       {Overrides{DatabaseBytes: &bytes}, func(q *Quotas) { q.DatabaseBytes = 5 }},
		"files":       {Overrides{BackupBytes: &bytes}, func(q *Quotas) { q.BackupBytes = 5 }},
		"validity":    {Overrides{CredentialValidity: &hour}, func(q *Quotas) { q.CredentialValidity = hour }},
	}
	for name, v := range cases {
		want := pro
		v.change(&want)
		if got := (Account{Plan: Pro, Overrides: v.with}).Quotas(); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	if planQuotas[Pro] != pro {
		t.Error("an override has changed the plan itself")
	}
}

func TestOverridesHaveBounds(t *testing.T) {
	number := func(n int) *int { return &n }
	bytes := func(n int64) *int64 { return &n }
	validity := func(d time.Duration) *time.Duration { return &d }
	for _, good := range []Overrides{
		{}, {MaxDatabases: number(0)}, {ConnectionCap: number(1)}, {BackupDays: number(1)}, {PITRDays: number(0)},
		{DatabaseBytes: bytes(1)}, {BackupBytes: bytes(1 << 50)},
		{CredentialValidity: validity(0)}, {CredentialValidity: validity(5 * time.Minute)},
	} {
		if err := good.Validate(); err != nil {
			t.Errorf("%+v: %v", good, err)
		}
	}
	for field, bad := range map[string]Overrides{
		"maxDatabases":       {MaxDatabases: number(-1)},
		"connectionCap":      {ConnectionCap: number(0)},
		"backupDays":         {BackupDays: number(0)},
		"pitrDays":           {PITRDays: number(-1)},
		"databaseBytes":      {DatabaseBytes: bytes(0)},
		"backupBytes":        {BackupBytes: bytes(1<<50 + 1)},
		"credentialValidity": {CredentialValidity: validity(5*time.Minute - 1)},
	} {
		if err := bad.Validate(); err == nil || !strings.HasPrefix(err.Error(), "VALIDATION_ERROR: "+field+":") {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func TestPreviewsAreForSyntheticData(t *testing.T) {
	for _, plan := range Plans {
		for _, exception := range []*bool{nil, new(false), new(true)} {
			err := Account{Plan: plan, Overrides: Overrides{PreviewCopies: exception}}.AdmitPreviewCopy()
			if open := exception != nil && *exception; open != (err == nil) || err != nil && !fault.Has(err, fault.FeatureNotAvailable) {
				t.Errorf("%s, %v: %v", plan, exception, err)
			}
		}
	}
}

func TestHowFarBackAPlanReaches(t *testing.T) {
	own := PITR{Free: 1, Business: 14}
	for _, c := range []struct {
		by   PITR
		of   Account
		days int
	}{
		{DefaultPITR(), Account{Plan: Free}, 0}, {DefaultPITR(), Account{Plan: Pro}, 3}, {DefaultPITR(), Account{Plan: Business}, 7},
		{own, Account{Plan: Free}, 1}, {own, Account{Plan: Pro}, 0}, {own, Account{Plan: Business}, 14},
		{own, Account{Plan: Business, Overrides: Overrides{PITRDays: new(0)}}, 0},
		{own, Account{Plan: Pro, Overrides: Overrides{PITRDays: new(2)}}, 2},
	} {
		if got := c.by.Days(c.of); got != c.days {
			t.Errorf("%v of %+v: %d days, want %d", c.by, c.of, got, c.days)
		}
		if err := c.by.Check(); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []PITR{{"gold": 1}, {Pro: -1}, {Pro: 36_501}} {
		if err := bad.Check(); !fault.Has(err, fault.ValidationError) {
			t.Errorf("%v: %v", bad, err)
		}
	}
}

func TestAdmitBeside(t *testing.T) {
	for _, c := range []struct {
		databases, deleted int
		bytes              int64
		admits             bool
	}{
		{1, 0, 0, true}, {1, 104, 0, true}, {1, 105, 0, false}, {100, 599, 0, true}, {100, 600, 0, false},
		{1, 1, 25*gib - 1, true}, {1, 1, 25 * gib, false}, {10, 1, 250*gib - 1, true}, {10, 1, 250 * gib, false},
		{mostDatabases, 1, 1 << 62, true}, {0, 0, 0, false},
	} {
		o := Overrides{MaxDatabases: &c.databases}
		if c.databases == mostDatabases {
			most := int64(mostBytes)
			o.DatabaseBytes, o.BackupBytes = &most, &most
		}
		err := Account{Plan: Free, Overrides: o}.AdmitBeside(Deleted{c.deleted, c.bytes})
		if (err == nil) != c.admits || err != nil && !fault.Has(err, fault.PlanLimit) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestAdmitDatabaseIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bound, existing := rapid.IntRange(0, 200).Draw(t, "bound"), rapid.IntRange(0, 200).Draw(t, "existing")
		a := Account{Plan: Free, Overrides: Overrides{MaxDatabases: &bound}}
		err := a.AdmitDatabase(existing)
		if (err == nil) != (existing < bound) {
			t.Fatalf("%d of %d: %v", existing, bound, err)
		}
		if err != nil && !fault.Has(err, fault.PlanLimit) {
			t.Fatal(err)
		}
	})
	if err := (Account{Plan: "unknown"}).AdmitDatabase(0); !fault.Has(err, fault.PlanLimit) {
		t.Errorf("an unknown plan admits a database: %v", err)
	}
}
