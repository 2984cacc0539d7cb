package wiring

import "testing"

// The address is compared with what browsers say, so it is as they say it.
func TestDashboardOrigin(t *testing.T) {
	for _, c := range []struct{ url, passkeys, want string }{
		{"https://db.example.com", "", "https://db.example.com"},
		{"https://db.example.com/", "example.com", "https://db.example.com"},
		{"https://DB.Example.com:443", "db.example.com", "https://db.example.com"},
		{"https://db.example.com:8443", "", "https://db.example.com:8443"},
		{"https://[::1]:443", "", "https://[::1]"},
		{"http://db.example.com", "", ""},
		{"https://db.example.com/path", "", ""},
		{"https://db.example.com?a=b", "", ""},
		{"https://user@db.example.com", "", ""},
		{"https://", "", ""},
		{"db.example.com", "", ""},
		{"https://db.example.com", "ample.com", ""},
		{"https://db.example.com", "other.db.example.com", ""},
	} {
		u, err := Dashboard{PasskeyHost: c.passkeys}.Origin(c.url)
		if (err == nil) != (c.want != "") || err == nil && u.String() != c.want {
			t.Errorf("%s for passkeys of %q: %v, %v", c.url, c.passkeys, u, err)
		}
	}
	if u, err := (Dashboard{}).Origin(""); u != nil || err != nil {
		t.Errorf("none is %v, %v", u, err)
	}
}

// API and batch host know where the dashboard is, and have no passkeys.
func TestWhoHasPasskeys(t *testing.T) {
	for product, has := range map[string]bool{"": false, "pgherd": true} {
		if v, err := (Dashboard{Product: product}).passkeys("https://db.example.com"); (v != nil) != has || err != nil {
			t.Errorf("with the name %q: %v, %v", product, v, err)
		}
	}
}
