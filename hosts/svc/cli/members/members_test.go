package members

import (
	"errors"
	"testing"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/hosts/svc/cli/app"
)

func TestPeopleAreNamedByAddressOrID(t *testing.T) {
	const uuid = "5d0a4f0e-7d4c-4b55-9d3c-0a1b2c3d4e5f"
	for text, want := range map[string]struct {
		id    id.MembershipID
		email string
		wrong bool
	}{
		"Bob@Example.org":                      {email: "bob@example.org"},
		uuid:                                   {id: uuid},
		"5D0A4F0E-7D4C-4B55-9D3C-0A1B2C3D4E5F": {id: uuid},
		"":                                     {wrong: true},
		"bob":                                  {wrong: true},
		"bob@":                                 {wrong: true},
		"Bob <bob@example.org>":                {wrong: true},
		uuid[:35]:                              {wrong: true},
	} {
		of, email, err := personNamed[id.MembershipID](text, "MEMBER")
		if of != want.id || email != want.email || errors.As(err, new(app.UsageError)) != want.wrong {
			t.Errorf("%q: %q, %q, %v", text, of, email, err)
		}
	}
}
