package controlplane_test

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/controlplane/people"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/person"
	"github.com/pgherd/pgherd/core/ratelimit"
	"github.com/pgherd/pgherd/core/token"
	"github.com/pgherd/pgherd/fakes/fakepasskeys"
	"github.com/pgherd/pgherd/ports"
)

// many is how many addresses and people a botnet tries from and for.
const many = 1000

// site is one of the addresses of a /48, each in a /64 of its own, and afar one of many of another /48 each.
func site(n int) people.Client {
	return people.Client{Address: netip.AddrFrom16([16]byte{0x20, 0x01, 0x0d, 0xb8, 0, 1, byte(n >> 8), byte(n)})}
}

func afar(n int) people.Client {
	return people.Client{Address: netip.AddrFrom16([16]byte{0x20, 0x01, 0x0d, 0xb8, byte(n >> 8), byte(n)})}
}

// near is one of the addresses of a /64.
func near(n int) people.Client {
	return people.Client{Address: netip.AddrFrom16([16]byte{0x20, 0x01, 0x0d, 0xb8, 14: byte(n >> 8), 15: byte(n)})}
}

func here(int) people.Client { return home() }

// Guesses are bounded, whoever is guessed from wherever, and so is what remembers them; a person is let in meanwhile.
func TestGuessesAreLimited(t *testing.T) {
	one := func(int) string { return "owner@example.org" }
	each := func(n int) string { return fmt.Sprintf("nobody%d@example.org", n) }
	for _, c := range []struct {
		what         string
		from         func(int) people.Client
		of           func(int) string
		atOnce, hour int // guesses that are compared
	}{
		{"one address, one person", here, one, 20, 30 + 59*2},
		{"one address, many people", here, each, 20, 60 * 20},
		{"many addresses of one /64, many people", near, each, 20, 60 * 20},
		{"many /64s of one /48, one person", site, one, 30, 30 + 59*2},
		{"many /64s of one /48, many people", site, each, 200, 60 * 200},
		{"many /48s, one person", afar, one, 30, 30 + 59*2},
		{"many addresses, one person", from, one, 30, 30 + 59*2},
		{"many addresses, many people", from, each, many, 60 * many}, // each once a minute, as it may
	} {
		t.Run(c.what, func(t *testing.T) {
			w := withPasskeys(t)
			buckets := &countedBuckets{Admissions: w.ports.Admissions, names: map[string]bool{}}
			w.ports.Admissions = buckets
			w.ControlPlane = w.process(quick())
			in := w.entered()
			phone := fakepasskeys.NewDevice("phone")
			must(w.registers(must(w.visits(in.Token))(t), phone))(t)
			w.clock.Advance(15 * time.Minute)
			compared, before := 0, w.passwords.compared.Load()
			for minute := range 60 {
				for n := range many {
					_, err := w.People.LogIn(w.ctx, people.Credentials{Email: c.of(n), Password: "a guess"}, c.from(n))
					if fault.Has(err, fault.Unauthorized) {
						compared++
					}
				}
				switch minute {
				case 0:
					equal(t, "guesses that are compared at once", compared, c.atOnce)
				case 30:
					known := home()
					known.Device = in.Device
					must(w.at(in.Device, password))(t)
					asked := must(w.People.BeginPasskeyLogIn(w.ctx, known))(t)
					must(w.People.LogInByPasskey(w.ctx, asked.Token, phone.Signs(asked.Options), known))(t)
				}
				w.clock.Advance(time.Minute)
			}
			equal(t, "guesses that are compared in an hour", compared, c.hour)
			equal(t, "passwords that are compared in an hour", w.passwords.compared.Load()-before, int64(c.hour+1))
			if n := len(buckets.names); n > 2*many+10 {
				t.Errorf("%d buckets", n)
			}
		})
	}
}

// countedBuckets counts the buckets that something is taken out of.
type countedBuckets struct {
	ports.Admissions
	names map[string]bool
}

func (c *countedBuckets) Take(ctx context.Context, bucket string, l ratelimit.Limit, now time.Time) (ratelimit.Decision, error) {
	c.names[bucket] = true
	return c.Admissions.Take(ctx, bucket, l, now)
}

// Who has an account, and so as many devices as they like, has no more attempts at others'.
func TestManyDevicesGuessNoMore(t *testing.T) {
	c := resetting(t)
	theirs, _, _ := c.newAccount("mallory@example.org", account.Free)
	c.setPassword(theirs.OwnerID, password)
	var devices []string
	for n := range 50 {
		in := must(c.People.LogIn(c.ctx, people.Credentials{Email: "mallory@example.org", Password: password}, from(n)))(t)
		devices = append(devices, in.Device)
		c.clock.Advance(time.Minute)
	}
	guesses, asks := 0, 0
	for n := range many {
		there := home()
		there.Device = devices[n%len(devices)]
		guess := people.Credentials{Email: fmt.Sprintf("nobody%d@example.org", n), Password: "a guess"}
		if _, err := c.People.LogIn(c.ctx, guess, there); !fault.Has(err, fault.RateLimited) {
			guesses++
		}
	}
	c.clock.Advance(time.Minute)
	for n := range 100 {
		there := home()
		there.Device = devices[n%len(devices)]
		if err := c.People.AskReset(c.ctx, fmt.Sprintf("nobody%d@example.org", n), there); !fault.Has(err, fault.RateLimited) {
			asks++
		}
	}
	equal(t, "guesses that were compared", guesses, 20)
	equal(t, "resets that were asked for", asks, 20)
}

// Who has the password tries few codes of the authenticator app, from however many addresses. Meanwhile the person logs in where
// they did before, by a passkey, and by a recovery code.
func TestCodesAreLimited(t *testing.T) {
	c, app, recovery := secured(t)
	device := c.deviceOf(app)
	c.clock.Advance(15 * time.Minute)
	compared := 0
	guess := func(n int) {
		in, err := c.People.LogIn(c.ctx, people.Credentials{Email: "owner@example.org", Password: password}, from(n))
		for err == nil || err.Error() == person.ErrLogIn().Error() {
			if _, err = c.People.GiveFactor(c.ctx, in.Token, "no code", from(n)); err.Error() == person.ErrLogIn().Error() {
				compared++
			}
		}
	}
	for n := range 24 * 60 {
		guess(n)
		c.clock.Advance(time.Minute)
	}
	if compared < 55 || compared > 60 {
		t.Errorf("%d codes were compared in a day, want 30 and those for which there is room in 24 hours", compared)
	}
	there := home()
	there.Device = device
	in := must(c.at(device, password))(t)
	must(c.People.GiveFactor(c.ctx, in.Token, code(c, app), there))(t)
	c.clock.Advance(15 * time.Minute)
	for n := range 5 {
		guess(n)
	}
	in = c.entered()
	refused(t, errOf(c.People.GiveFactor(c.ctx, in.Token, code(c, app), home())), fault.RateLimited)
	must(c.People.GiveFactor(c.ctx, in.Token, recovery[1], home()))(t)
}

// What is no password has too many random bits to be guessed; and who tries leaves those who have it theirs.
func TestTokensAreTriedSeldom(t *testing.T) {
	random := func(c *crowd) string { return c.ports.Entropy.Base62(token.Characters) }
	for what, try := range map[string]struct {
		made  func(c *crowd) string
		tried func(c *crowd, token string, from people.Client) error
	}{
		"a link to choose a password": {
			func(c *crowd) string { return must(c.Operator.LinkUser(c.ctx, "owner@example.org"))(c.t).Token },
			func(c *crowd, token string, from people.Client) error {
				return errOf(c.People.Reset(c.ctx, token, "another one", from))
			},
		},
		"a link to log in": {
			func(c *crowd) string { return must(c.Operator.LinkUser(c.ctx, "owner@example.org"))(c.t).Token },
			func(c *crowd, token string, from people.Client) error {
				return errOf(c.People.LogInByLink(c.ctx, token, from))
			},
		},
		"a log-in that waits for a code": {
			func(c *crowd) string {
				owner := c.person()
				app := must(c.People.BeginFactor(c.ctx, owner))(c.t)
				must(c.People.ConfirmFactor(c.ctx, owner, code(c, app)))(c.t)
				c.clock.Advance(person.Touch)
				return c.entered().Token + code(c, app)
			},
			func(c *crowd, both string, from people.Client) error {
				return errOf(c.People.GiveFactor(c.ctx, both[:len(both)-6], both[len(both)-6:], from))
			},
		},
	} {
		t.Run(what, func(t *testing.T) {
			c := newCrowd(t)
			right := try.made(c)
			stranger := from(1)
			for range ratelimit.Defaults()[ratelimit.LogIn].Count {
				refused(t, try.tried(c, random(c), stranger), fault.Unauthorized)
			}
			refused(t, try.tried(c, right, stranger), fault.RateLimited)
			ok(t, try.tried(c, right, home()))
		})
	}
}
