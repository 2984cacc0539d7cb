package member

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/machine/machinetest"
	"github.com/pgherd/pgherd/core/token"
)

var start = time.Date(2026, 1, 5, 9, 30, 0, 0, time.UTC)

func TestTransitions(t *testing.T) {
	machinetest.Complete(t, Transitions, Statuses, Events)
	machinetest.Moves(t, Transitions, Statuses, Events, map[Status]map[Event]Status{
		Open:    {Accept: Accepted, Resend: Open, Revoke: Revoked, Expire: Expired},
		Expired: {Resend: Open, Revoke: Revoked},
	}, fault.InvitationNotFound)
}

func invited() Invitation {
	return Invitation{ID: "i", DatabaseID: "d", Email: "bob@example.org", Role: account.Viewer}.Opened(token.Of("first"), start)
}

func TestSevenDays(t *testing.T) {
	last := start.Add(7*24*time.Hour - time.Nanosecond)
	if _, err := invited().Accepted(last); err != nil {
		t.Errorf("in the last moment: %v", err)
	}
	if _, err := invited().Accepted(last.Add(time.Nanosecond)); !fault.Has(err, fault.InvitationNotFound) {
		t.Errorf("after seven days: %v", err)
	}
	again, err := invited().Resent(account.Admin, token.Of("second"), last.Add(time.Hour))
	if err != nil || again.Status != Open || again.Role != account.Admin || again.EndedAt != nil ||
		!again.ExpiresAt.Equal(last.Add(time.Hour).Add(Validity)) || !again.CreatedAt.Equal(start) {
		t.Errorf("resent after its end: %+v, %v", again, err)
	}
	if token.Of("first").Equals(again.TokenHash) || !token.Of("second").Equals(again.TokenHash) {
		t.Error("a new token does not end the old one")
	}
}

// Whatever happens, in whatever order: a token works at most once, never after its seven days, and only the latest; and an
// invitation that was accepted or revoked stays so.
func TestTokensWorkOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		i, now, text, used, over := invited(), start, "first", 0, false
		issued := start
		for n := range rapid.IntRange(1, 12).Draw(t, "events") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(3*Validity/2)).Draw(t, "pause")))
			switch rapid.SampledFrom(Events).Draw(t, "event") {
			case Accept:
				next, err := i.Accepted(now)
				if allowed := !over && now.Before(issued.Add(Validity)); (err == nil) != allowed {
					t.Fatalf("accepting %s after its issue: %v", now.Sub(issued), err)
				}
				if err == nil {
					i, over, used = next, true, used+1
				}
			case Resend:
				fresh := text + string(rune('a'+n))
				next, err := i.Resent(account.Viewer, token.Of(fresh), now)
				if (err == nil) == over {
					t.Fatalf("sending again: %v", err)
				}
				if err == nil {
					if token.Of(text).Equals(next.TokenHash) {
						t.Fatal("the old token still works")
					}
					i, text, issued = next, fresh, now
				}
			case Revoke:
				next, err := i.Revoked(now)
				if (err == nil) == over {
					t.Fatalf("revoking: %v", err)
				}
				if err == nil {
					i, over = next, true
				}
			case Expire:
				i = i.At(now)
			}
			if (i.EndedAt == nil) != (i.Status == Open) {
				t.Fatalf("%s with an end at %v", i.Status, i.EndedAt)
			}
		}
		if used > 1 {
			t.Fatalf("accepted %d times", used)
		}
	})
}

func TestMasked(t *testing.T) {
	for email, want := range map[string]string{
		"bob@example.org": "b…@example.org", "b@example.org": "b…@example.org", "öl+x@example.org": "ö…@example.org",
	} {
		if got := (Invitation{Email: email}).Masked(); got != want {
			t.Errorf("%s is %s in the log", email, got)
		}
	}
}

func TestRoom(t *testing.T) {
	list := func(n int, status Status) (all []Invitation) {
		for range n {
			i := invited()
			i.Status = status
			all = append(all, i)
		}
		return all
	}
	later := start.Add(Validity)
	for _, c := range []struct {
		what             string
		members          int
		invited          []Invitation
		now              time.Time
		member, invitees bool
	}{
		{"nobody", 0, nil, start, true, true},
		{"49 open", 0, list(49, Open), start, true, true},
		{"50 open", 0, list(50, Open), start, true, false},
		{"50 that have run out", 0, list(50, Open), later, true, true},
		{"60 expired", 0, list(60, Expired), start, true, true},
		{"499 members", 499, nil, start, true, true},
		{"499 people", 489, list(10, Open), start, true, true},
		{"500 people", 490, list(10, Open), start, false, false},
	} {
		for what, v := range map[string]struct {
			err  error
			want bool
		}{
			"member":     {AdmitMember(c.members, c.invited, c.now), c.member},
			"invitation": {AdmitInvitation(c.members, c.invited, c.now), c.invitees},
		} {
			if (v.err == nil) != v.want || v.err != nil && !fault.Has(v.err, fault.MemberConflict) {
				t.Errorf("%s, one more %s: %v", c.what, what, v.err)
			}
		}
	}
}

func TestParseRole(t *testing.T) {
	for _, r := range Roles {
		if got, err := ParseRole(string(r)); err != nil || got != r {
			t.Errorf("%s: %s, %v", r, got, err)
		}
	}
	for _, text := range []string{"", "owner", "Admin", "viewer "} {
		if _, err := ParseRole(text); !fault.Has(err, fault.ValidationError) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
