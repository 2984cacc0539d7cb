package mail

import "testing"

func TestMailbox(t *testing.T) {
	for address, want := range map[string]string{
		"bob@example.org":       "bob@example.org",
		"bob+shop@example.org":  "bob@example.org",
		"bob+@example.org":      "bob@example.org",
		"bob+a+b@example.org":   "bob@example.org",
		"+bob@example.org":      "+bob@example.org",
		"b.ob@example.org":      "b.ob@example.org",
		"bob@a+b.example.org":   "bob@a+b.example.org",
		"bob-shop@example.org":  "bob-shop@example.org",
		"bob+a@b+c.example.org": "bob@b+c.example.org",
	} {
		if got := Mailbox(address); got != want {
			t.Errorf("%s counts as %s", address, got)
		}
	}
}
