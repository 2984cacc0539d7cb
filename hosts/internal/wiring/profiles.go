package wiring

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"runtime/pprof"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"
)

const (
	// usualCPUProfile and longestCPUProfile are how long a profile of the processor's time takes.
	usualCPUProfile   = 10 * time.Second
	longestCPUProfile = 30 * time.Second
	// profilePause is the time from the end of one profile to the next: making one stops all goroutines for a moment.
	profilePause = time.Second
	// profileSendLimit is how long a client may take to read one.
	profileSendLimit = 10 * time.Second
)

// cpuProfile is the name of the profile of the processor's time, and storedProfiles are those that the process has at any time.
// They say which functions run, wait and hold memory, and nothing of what is in it. What would say more is not served: the
// command line, the text of goroutines with their arguments, and traces.
const cpuProfile = "profile"

var storedProfiles = map[string]bool{"goroutine": true, "heap": true, "allocs": true}

// profiles serves GET /debug/pprof/NAME to programs on the host's own machine, one at a time.
type profiles struct {
	log *zap.Logger
	// slot is full while a profile is made, and in the pause after it.
	slot chan struct{}
}

func newProfiles(log *zap.Logger) *profiles { return &profiles{log, make(chan struct{}, 1)} }

func (p *profiles) serve(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	refuse := func(status int, text string) { writeJSON(w, status, map[string]string{"error": text}) }
	if !fromHere(r) {
		refuse(http.StatusForbidden, "profiles are given to programs on this machine alone, by its address, and not through a proxy")
		return
	}
	if name != cpuProfile && !storedProfiles[name] {
		refuse(http.StatusNotFound, "there are the profiles profile, goroutine, heap and allocs")
		return
	}
	takes, err := profileTime(name, r)
	if err != nil {
		refuse(http.StatusBadRequest, err.Error())
		return
	}
	select {
	case p.slot <- struct{}{}:
		defer func() { time.AfterFunc(profilePause, func() { <-p.slot }) }()
	default:
		w.Header().Set("Retry-After", strconv.Itoa(int(longestCPUProfile/time.Second)))
		refuse(http.StatusTooManyRequests, "another profile is being made, or just was")
		return
	}
	// The deadlines of the listener are for answers that are there at once. One to read that has passed would look like a client
	// that has left.
	deadline, conn := time.Now().Add(takes+profileSendLimit), http.NewResponseController(w)
	if err := conn.SetReadDeadline(deadline); err != nil {
		refuse(http.StatusInternalServerError, "the connection has no deadlines")
		return
	}
	_ = conn.SetWriteDeadline(deadline) // which it has, too
	var made bytes.Buffer
	if err := makeProfile(r.Context(), &made, name, takes); err != nil {
		refuse(http.StatusServiceUnavailable, err.Error())
		return
	}
	p.log.Info("a profile was made", zap.String("profile", name), zap.Duration("took", takes), zap.Int("bytes", made.Len()))
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", `attachment; filename="`+name+`"`)
	_, _ = made.WriteTo(w) // a client that has left is no fault
}

// makeProfile makes a profile in the format of pprof. One of the processor's time ends with ctx.
func makeProfile(ctx context.Context, into *bytes.Buffer, name string, takes time.Duration) error {
	if name != cpuProfile {
		return pprof.Lookup(name).WriteTo(into, 0)
	}
	if err := pprof.StartCPUProfile(into); err != nil {
		return err
	}
	defer pprof.StopCPUProfile()
	select {
	case <-time.After(takes):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// profileTime is how long a profile takes, by ?seconds=, which the one of the processor's time has. An error names the parameter.
func profileTime(name string, r *http.Request) (takes time.Duration, err error) {
	if name == cpuProfile {
		takes = usualCPUProfile
	}
	for field, values := range r.URL.Query() {
		if field != "seconds" || name != cpuProfile {
			return 0, fmt.Errorf("%q is no parameter of the profile %s", field, name)
		}
		most := int(longestCPUProfile / time.Second)
		n, err := strconv.Atoi(values[0])
		if err != nil || n < 1 || n > most || len(values) > 1 {
			return 0, fmt.Errorf("seconds: give one whole number from 1 to %d", most)
		}
		takes = time.Duration(n) * time.Second
	}
	return takes, nil
}

// fromHere reports whether a program on this machine has sent a request itself: from a loopback address, or from the address that
// it came to. What most proxies pass on says so, and what a page has a browser on this machine ask for has a name of that page's.
// A proxy on this machine that says nothing is not told apart.
func fromHere(r *http.Request) bool {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = strings.Trim(r.Host, "[]") // without a port
	}
	if _, err := netip.ParseAddr(host); err != nil && !strings.EqualFold(host, "localhost") {
		return false
	}
	for _, passedOn := range []string{"Forwarded", "X-Forwarded-For", "X-Real-Ip", "Via"} {
		if len(r.Header.Values(passedOn)) > 0 {
			return false
		}
	}
	local, known := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !known {
		return false
	}
	to, err := netip.ParseAddrPort(local.String())
	ip := from.Addr().Unmap()
	return err == nil && (ip.IsLoopback() || ip == to.Addr().Unmap())
}
