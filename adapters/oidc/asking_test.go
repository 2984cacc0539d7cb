package oidc

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/pgherd/pgherd/acceptance/oidcissuer"
	"github.com/pgherd/pgherd/core/citoken"
	"github.com/pgherd/pgherd/fakes/fakeclock"
)

// names is a resolver that knows one address of each name.
type names map[string]string

func (n names) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	a, err := netip.ParseAddr(n[host])
	if err != nil {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return []netip.Addr{a}, nil
}

// asked fails the test unless the issuer was asked so often in all.
func asked(t *testing.T, i *oidcissuer.Issuer, configuration, keys int64) {
	t.Helper()
	if c, k := i.Asked.Load(), i.AskedKeys.Load(); c != configuration || k != keys {
		t.Errorf("asked %d times for the configuration and %d times for the keys; want %d and %d", c, k, configuration, keys)
	}
}

func TestKeysAreKeptForAWhile(t *testing.T) {
	i, clock := start(t), fakeclock.New()
	v := local(t, clock, i.CA)
	token := i.Token(map[string]any{"iss": i.URL})
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() { accepts(t, v, token, i.URL) })
	}
	all.Wait()
	asked(t, i, 1, 1)
	i.Rotate(jose.ES256) // which withdraws the key of the token
	clock.Advance(keysKept - time.Second)
	accepts(t, v, token, i.URL)
	asked(t, i, 1, 1)
	clock.Advance(time.Second)
	refuses(t, v, token, citoken.NotSigned, i.URL)
	accepts(t, v, i.Token(map[string]any{"iss": i.URL}), i.URL)
	asked(t, i, 2, 2)
}

// Whoever makes tokens up must not make us ask for each.
func TestMadeUpKeysAreAskedForOnceInAWhile(t *testing.T) {
	i, stranger, clock := start(t), start(t), fakeclock.New()
	v := local(t, clock, i.CA)
	key, _ := stranger.Key()
	claims := map[string]any{"iss": i.URL}
	for n := range 30 {
		refuses(t, v, oidcissuer.Sign(key, fmt.Sprint(n), claims), citoken.NotSigned, i.URL)
	}
	asked(t, i, 1, 1)
	i.Rotate(jose.ES256)
	refuses(t, v, i.Token(claims), citoken.NotSigned, i.URL)
	clock.Advance(pause)
	accepts(t, v, i.Token(claims), i.URL)
	for n := range 30 {
		refuses(t, v, oidcissuer.Sign(key, fmt.Sprint(n), claims), citoken.NotSigned, i.URL)
	}
	accepts(t, v, i.Token(claims), i.URL)
	asked(t, i, 1, 2)
}

func TestAnIssuerThatIsDownIsNotAskedForAWhile(t *testing.T) {
	i, clock := start(t), fakeclock.New()
	v := local(t, clock, i.CA)
	token := i.Token(map[string]any{"iss": i.URL})
	i.Answers(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	for range 10 {
		refuses(t, v, token, citoken.NotAsked, i.URL)
	}
	asked(t, i, 1, 0)
	i.Answers(nil)
	refuses(t, v, token, citoken.NotAsked, i.URL)
	clock.Advance(pause)
	accepts(t, v, token, i.URL)
	asked(t, i, 2, 1)
}

// keptBack is an issuer whose keys are known, by a token with one of them, and which answers its configuration and no keys now.
func keptBack(t *testing.T) (i *oidcissuer.Issuer, clock *fakeclock.Clock, v *Verifier, token string) {
	t.Helper()
	i, clock = start(t), fakeclock.New()
	v = local(t, clock, i.CA)
	token = i.Token(map[string]any{"iss": i.URL})
	accepts(t, v, token, i.URL)
	i.Says(func(document map[string]any) { document["jwks_uri"] = i.URL + "/gone" })
	return i, clock, v, token
}

// Where the configuration is answered and the keys are not, those of before count on.
func TestKeysOutliveAnIssuerThatKeepsThemBack(t *testing.T) {
	i, clock, v, token := keptBack(t)
	for range 3 {
		clock.Advance(keysKept)
		accepts(t, v, token, i.URL)
		accepts(t, v, token, i.URL)
	}
	i.Says(nil)
	i.Rotate(jose.ES256) // the former key is withdrawn
	clock.Advance(keysKept)
	accepts(t, v, i.Token(map[string]any{"iss": i.URL}), i.URL)
	refuses(t, v, token, citoken.NotSigned, i.URL)
}

func TestKeysDoNotOutliveForEver(t *testing.T) {
	i, clock, v, token := keptBack(t)
	clock.Advance(keysKept)
	accepts(t, v, token, i.URL)
	clock.Advance(keysKept + keysOutlive)
	refuses(t, v, token, citoken.NotAsked, i.URL)
	refuses(t, v, token, citoken.NotAsked, i.URL)
}

// brief is how long an issuer has that does not answer in time.
const brief = 300 * time.Millisecond

// An issuer that sends a byte now and then is as slow as one that sends none.
func TestASlowIssuerIsGivenUp(t *testing.T) {
	i := start(t)
	v := local(t, fakeclock.New(), i.CA)
	v.transport.timeout = brief
	i.Answers(func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			_, _ = w.Write([]byte(" "))
			_ = http.NewResponseController(w).Flush()
			time.Sleep(10 * time.Millisecond)
		}
	})
	began := time.Now()
	refuses(t, v, i.Token(map[string]any{"iss": i.URL}), citoken.NotAsked, i.URL)
	if took := time.Since(began); took < brief || took > 10*brief {
		t.Errorf("it took %s", took)
	}
}

// Its keys are asked for in vain: tokens with a key that is known go on meanwhile.
func TestKnownKeysDoNotWaitForUnknownOnes(t *testing.T) {
	i, stranger, clock := start(t), start(t), fakeclock.New()
	v := local(t, clock, i.CA)
	claims := map[string]any{"iss": i.URL}
	accepts(t, v, i.Token(claims), i.URL)
	time.Sleep(20 * joined) // the library gives the result of that request until it has forgotten it
	clock.Advance(pause)
	v.transport.timeout = brief
	key, _ := stranger.Key()
	release := i.Silence()
	defer release()
	waits := make(chan error)
	go func() {
		_, err := v.Verify(t.Context(), oidcissuer.Sign(key, "x", claims), []string{i.URL})
		waits <- err
	}()
	accepts(t, v, i.Token(claims), i.URL)
	if err := <-waits; err != citoken.NotAsked {
		t.Error(err)
	}
}

func TestThoseWhoWaitAreBounded(t *testing.T) {
	i := start(t)
	v := local(t, fakeclock.New(), i.CA)
	release := i.Silence()
	token := i.Token(map[string]any{"iss": i.URL})
	ctx, leave := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range maxWaiting {
		all.Go(func() { _, _ = v.Verify(ctx, token, []string{i.URL}) })
	}
	by := v.issuer(i.URL)
	for full := false; !full; time.Sleep(time.Millisecond) {
		by.mu.Lock()
		full = by.inside == maxWaiting
		by.mu.Unlock()
	}
	refuses(t, v, token, citoken.NotAsked, i.URL)
	leave()
	all.Wait()
	release()
}

// After a clock was moved back, an issuer is asked as ever.
func TestAClockThatIsMovedBack(t *testing.T) {
	i := start(t)
	now := time.Now()
	v := local(t, fakeclock.New(), i.CA)
	v.now = func() time.Time { return now }
	claims := map[string]any{"iss": i.URL}
	accepts(t, v, i.Token(claims), i.URL)
	now = now.Add(-25 * time.Hour)
	i.Rotate(jose.ES256)
	accepts(t, v, i.Token(claims), i.URL)
	asked(t, i, 2, 2)
}

func TestIssuersAreForgottenWhenThereAreMany(t *testing.T) {
	v := local(t, fakeclock.New(), start(t).CA)
	for n := range 2*maxIssuers + 1 {
		v.issuer(fmt.Sprint(n))
	}
	if n := len(v.issuers); n == 0 || n > maxIssuers {
		t.Errorf("%d are remembered", n)
	}
}
