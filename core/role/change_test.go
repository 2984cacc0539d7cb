package role

import (
	"testing"

	"github.com/pgherd/pgherd/core/database"
)

func TestKindsOfUsers(t *testing.T) {
	for _, k := range Kinds {
		if want := k == "rotate" || k == "revoke"; k.Public() != want {
			t.Errorf("%s: %v", k, k.Public())
		}
	}
}

func TestEndOfAChange(t *testing.T) {
	c := Change{
		ID: someChange, RoleID: someRole, Kind: Rotation, Status: Pending, CredentialGeneration: 2,
		Verifier: "SCRAM", Sealed: []byte("p"),
	}
	if !c.Open() {
		t.Error("a pending change is not open")
	}
	for _, s := range []ChangeStatus{Completed, Refused} {
		e := c.Ended(s, noon)
		if e.Open() || e.Status != s || e.EndedAt == nil || !e.EndedAt.Equal(noon) || e.Verifier != "" || e.Sealed != nil {
			t.Errorf("%+v", e)
		}
		if e.ID != c.ID || e.CredentialGeneration != 2 || e.SecretContext() != c.SecretContext() {
			t.Errorf("%+v is another change", e)
		}
	}
	if c.Sealed == nil || c.EndedAt != nil {
		t.Error("the change that was ended has itself changed")
	}
}

// The password of a rotation is bound to what it will be the password of.
func TestSecretContextOfAChange(t *testing.T) {
	r := Role{ID: someRole, DatabaseID: someDatabase, CredentialGeneration: 5}
	c := Change{ID: someChange, DatabaseID: someDatabase, RoleID: someRole, CredentialGeneration: 5}
	if c.SecretContext() != r.SecretContext() {
		t.Error(c.SecretContext())
	}
	c.RoleID, c.Login = "", database.RuntimeLogin
	if got := c.SecretContext(); got != "database/0189abcd-ef01-4234-8567-89abcdef0123/login/runtime/5" {
		t.Error(got)
	}
}
