package roles

import (
	"testing"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
)

// A username stands for its role, also where another role is called so.
func TestRolesAreFound(t *testing.T) {
	list := []wire.ListedRole{
		{Role: wire.Role{RoleID: "5d0a4f0e-7d4c-4b55-9d3c-0a1b2c3d4e5f", Username: "pgh_c1", DisplayName: "Reports"}},
		{Role: wire.Role{RoleID: "6d0a4f0e-7d4c-4b55-9d3c-0a1b2c3d4e5f", Username: "pgh_c2", DisplayName: "Monthly reports"}},
		{Role: wire.Role{RoleID: "7d0a4f0e-7d4c-4b55-9d3c-0a1b2c3d4e5f", Username: "pgh_c3", DisplayName: "pgh_c1"}},
	}
	for name, want := range map[string]string{
		"Reports": "pgh_c1", "Monthly\u00a0 reports ": "pgh_c2", "pgh_c1": "pgh_c1", "pgh_c3": "pgh_c3",
		"6D0A4F0E-7D4C-4B55-9D3C-0A1B2C3D4E5F": "pgh_c2", "reports": "", "pgh_c4": "", "": "",
	} {
		found, err := RoleIn(list, name)
		if found.Username != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v; want %q", name, found.Username, err, want)
		}
	}
}
