package role

import (
	"slices"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

const (
	someDatabase id.DatabaseID  = "0189abcd-ef01-4234-8567-89abcdef0123"
	someRole     id.RoleID      = "11111111-2222-4333-8444-555555555555"
	otherRole    id.RoleID      = "99999999-2222-4333-8444-555555555555"
	someChange   id.OperationID = "66666666-7777-4888-9999-000000000000"
)

var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

func TestAccessProfiles(t *testing.T) {
	for _, s := range []string{"read_only", "read_write", "custom"} {
		if p, err := ParseAccessProfile(s); err != nil || string(p) != s {
			t.Errorf("%s: %s, %v", s, p, err)
		}
	}
	for _, s := range []string{"", "READ_ONLY", "read-only", "readonly", " custom", "custom\n", "owner", "runtime", "admin"} {
		p, err := ParseAccessProfile(s)
		if p != "" || !invalidField(err, "accessProfile") {
			t.Errorf("%q: %q, %v", s, p, err)
		}
	}
}

// invalidField reports whether err is VALIDATION_ERROR about exactly this field.
func invalidField(err error, field string) bool {
	f, ok := err.(*fault.Error)
	return ok && f.Code == fault.ValidationError && len(f.Details) == 1 && f.Details[0].Field == field
}

func TestSecretContexts(t *testing.T) {
	r := Role{ID: someRole, DatabaseID: someDatabase, CredentialGeneration: 3}
	const want = "database/0189abcd-ef01-4234-8567-89abcdef0123/role/11111111-2222-4333-8444-555555555555/3"
	if got := r.SecretContext(); got != want {
		t.Error(got)
	}
	others := []string{
		SecretContext(someDatabase, someRole, 4), SecretContext(someDatabase, someRole, 33), SecretContext(someDatabase, otherRole, 3),
		SecretContext("0189abcd-ef01-4234-8567-89abcdef0124", someRole, 3),
		database.LoginSecretContext(someDatabase, database.OwnerLogin, 3),
		database.LoginSecretContext(someDatabase, database.Login("role/"+someRole), 3),
	}
	if slices.Contains(others, want) {
		t.Errorf("not only the role's password is bound to %s", want)
	}
}

func TestValidityEnds(t *testing.T) {
	at := func(d time.Duration) *time.Time { end := noon.Add(d); return &end }
	cases := map[string]struct {
		end  *time.Time
		want bool
	}{
		"never": {nil, false}, "in an hour": {at(time.Hour), false}, "in a moment": {at(1), false},
		"now": {at(0), true}, "a moment ago": {at(-1), true},
	}
	for name, c := range cases {
		if got := (Role{CredentialExpiresAt: c.end}).CredentialExpired(noon); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestForgotten(t *testing.T) {
	r := Role{ID: someRole, Status: Revoked, CredentialGeneration: 2, Verifier: "SCRAM", Sealed: []byte("p")}
	f := r.Forgotten()
	if f.Verifier != "" || f.Sealed != nil || f.ID != someRole || f.CredentialGeneration != 2 || r.Verifier == "" {
		t.Errorf("%+v", f)
	}
}
