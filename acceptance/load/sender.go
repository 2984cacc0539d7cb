package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

// request is one that customers send, and how often among a hundred.
type request struct {
	often  int
	method string
	path   string // "%s" stands for a database of the key's account
	body   string
}

var requests = []request{
	{60, "GET", "/databases/%s", ""},
	{20, "GET", "/databases", ""},
	{10, "GET", "/databases/%s/backups", ""},
	{6, "GET", "/databases/%s/network/allowlist", ""},
	{2, "GET", "/databases/%s/custom-roles", ""},
	{2, "PATCH", "/databases/%s/environment", `{"environment": "production"}`},
}

// owner is a key with the databases that it reaches.
type owner struct {
	key       string
	databases []string
}

// answers are what came back of so many requests, each counted from when it was due.
type answers struct {
	mu      sync.Mutex
	of      map[int]int // by status
	errors  map[string]int
	hasty   int // refusals that do not say when to come back
	took    []time.Duration
	refused []time.Duration
	sent    int
}

func (a *answers) add(status int, after string, err error, took time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sent++
	switch {
	case err != nil:
		a.errors[err.Error()]++
	case status == fasthttp.StatusTooManyRequests || status == fasthttp.StatusServiceUnavailable:
		if seconds, err := strconv.Atoi(after); err != nil || seconds < 1 {
			a.hasty++
		}
		a.refused = append(a.refused, took)
	default:
		a.took = append(a.took, took)
	}
	if err == nil {
		a.of[status]++
	}
}

func percentile(all []time.Duration, of int) time.Duration {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[(len(all)-1)*of/100]
}

func (a *answers) p99() time.Duration { return percentile(a.took, 99) }

func (a *answers) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%d sent,", a.sent)
	statuses := make([]int, 0, len(a.of))
	for status := range a.of {
		statuses = append(statuses, status)
	}
	slices.Sort(statuses)
	for _, status := range statuses {
		fmt.Fprintf(&out, " %d × %d,", a.of[status], status)
	}
	fmt.Fprintf(&out, " done: median %v, p99 %v", percentile(a.took, 50).Round(time.Millisecond), a.p99().Round(time.Millisecond))
	if len(a.refused) > 0 {
		fmt.Fprintf(&out, "; refused: median %v, p99 %v", percentile(a.refused, 50).Round(time.Millisecond),
			percentile(a.refused, 99).Round(time.Millisecond))
	}
	for text, n := range a.errors {
		fmt.Fprintf(&out, "; %d × %s", n, text)
	}
	return out.String()
}

// strange is an error where anything came back but what was asked for, 429 and 503.
func (a *answers) strange() error {
	var failed error
	for status, n := range a.of {
		if status >= 300 && status != fasthttp.StatusTooManyRequests && status != fasthttp.StatusServiceUnavailable {
			failed = errors.Join(failed, fmt.Errorf("%d answers with status %d", n, status))
		}
	}
	for text, n := range a.errors {
		failed = errors.Join(failed, fmt.Errorf("%d requests without an answer: %s", n, text))
	}
	if a.hasty > 0 {
		failed = errors.Join(failed, fmt.Errorf("%d refusals do not say when to come back", a.hasty))
	}
	return failed
}

// kept is an error unless everything was done in time.
func (a *answers) kept() error {
	failed := a.strange()
	if len(a.refused) > 0 {
		failed = errors.Join(failed, fmt.Errorf("%d requests were refused", len(a.refused)))
	}
	if p99 := a.p99(); p99 > promise {
		failed = errors.Join(failed, fmt.Errorf("the 99th percentile is %v", p99))
	}
	return failed
}

// mostRefused is how long a refusal may take, and what is done while so many are refused.
const mostRefused = 2 * time.Second

// refusedWell is an error unless what was too much was refused, with both codes, and soon.
func (a *answers) refusedWell() error {
	failed := a.strange()
	for _, status := range []int{fasthttp.StatusTooManyRequests, fasthttp.StatusServiceUnavailable} {
		if a.of[status] == 0 {
			failed = errors.Join(failed, fmt.Errorf("nothing was refused with %d", status))
		}
	}
	for what, all := range map[string][]time.Duration{"refusals": a.refused, "answers": a.took} {
		if p99 := percentile(all, 99); p99 > mostRefused {
			failed = errors.Join(failed, fmt.Errorf("the 99th percentile of %s is %v", what, p99))
		}
	}
	return failed
}

// mostOpen bounds how many requests are under way: a sender that had more would measure itself.
const mostOpen = 8000

var errTooManyOpen = errors.New("too many requests under way")

// send sends so many requests a second, whether those before were answered or not.
func (w *world) send(ctx context.Context, rate int, during time.Duration) *answers {
	all := &answers{of: map[int]int{}, errors: map[string]int{}}
	slots := make(chan struct{}, mostOpen)
	var sending sync.WaitGroup
	began := time.Now()
	for n := 0; ctx.Err() == nil; n++ {
		due := began.Add(time.Duration(n) * time.Second / time.Duration(rate))
		if due.Sub(began) > during {
			break
		}
		time.Sleep(time.Until(due))
		select {
		case slots <- struct{}{}:
		default:
			all.add(0, "", errTooManyOpen, 0)
			continue
		}
		sending.Go(func() {
			defer func() { <-slots }()
			status, after, err := w.ask()
			all.add(status, after, err, time.Since(due))
		})
	}
	sending.Wait()
	return all
}

// ask sends one request, any of any owner's.
func (w *world) ask() (status int, after string, err error) {
	o := w.owners[rand.IntN(len(w.owners))]
	r, drawn := requests[0], rand.IntN(100)
	for _, r = range requests {
		if drawn -= r.often; drawn < 0 {
			break
		}
	}
	request, response := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(request)
	defer fasthttp.ReleaseResponse(response)
	path := r.path
	if strings.Contains(path, "%s") {
		path = fmt.Sprintf(path, o.databases[rand.IntN(len(o.databases))])
	}
	request.SetRequestURI(w.api.URL + "/api/v1" + path)
	request.Header.SetMethod(r.method)
	request.Header.Set("Authorization", "Bearer "+o.key)
	if r.body != "" {
		request.Header.SetContentType("application/json")
		request.SetBodyString(r.body)
	}
	if err := w.client.DoTimeout(request, response, time.Minute); err != nil {
		return 0, "", err
	}
	return response.StatusCode(), string(response.Header.Peek("Retry-After")), nil
}

const (
	firstRate = 200
	tryFor    = 10 * time.Second
	// nearEnough is the share of the highest rate that the search leaves open.
	nearEnough = 20
)

// highest finds the highest rate that keeps the promise: it doubles until one does not, and then halves what is between.
func (w *world) highest(ctx context.Context) (int, error) {
	keeps := func(rate int) bool {
		a := w.send(ctx, rate, tryFor)
		fmt.Printf("  %d/s: %s\n", rate, a)
		return a.kept() == nil
	}
	low, high := 0, firstRate
	for keeps(high) {
		low, high = high, 2*high
	}
	for high-low > max(1, high/nearEnough) && ctx.Err() == nil {
		if middle := (low + high) / 2; keeps(middle) {
			low = middle
		} else {
			high = middle
		}
	}
	if low == 0 {
		return 0, fmt.Errorf("no rate keeps the 99th percentile below %v", promise)
	}
	// What was tried for seconds has to hold for minutes.
	return low * 9 / 10, ctx.Err()
}
