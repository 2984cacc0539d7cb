package apiclient

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Config says whom to call, and how long to try. Only URL is required.
type Config struct {
	// URL of the service, without /api/v1.
	URL string
	// Key is the API key. Without one, requests have no Authorization header.
	Key string
	// UserAgent names the program that calls, such as svc/v1.0.0; empty for Go's own.
	UserAgent string
	// HTTP sends the requests; nil for http.DefaultClient. Its Timeout would cut downloads off.
	HTTP *http.Client
	// Attempts is how often a call is sent at most; 0 for 4. Only a call that may be repeated is sent a second time: one of the
	// methods GET, PATCH and DELETE, one with an Idempotency-Key, one that does nothing twice, and one that the API wants repeated
	// until it is done. Where something was removed but the answer was lost, the call succeeds although the next attempt is told
	// that there is nothing.
	Attempts int
	// Patience is how long a call that may be repeated is repeated for, whatever Attempts is and however late the API wants it
	// again, while that answers RATE_LIMITED, SERVER_BUSY or MAINTENANCE. 0 for not at all.
	Patience time.Duration
	// Waiting is told of each wait before a call is sent again, and of the error that it follows; nil for nobody.
	Waiting func(why error, wait time.Duration)
}

const (
	// attemptTimeout bounds one attempt of a call, and of a download the wait for its header.
	attemptTimeout = 2 * time.Minute
	// stallTimeout ends an attempt of a download or an upload that moves no byte for so long.
	stallTimeout = time.Minute
	// longestWait is the longest Retry-After that a call waits for. A longer one is the caller's to wait for.
	longestWait = 30 * time.Second
)

// Client calls the API with one key. Any number of goroutines may use it.
type Client struct {
	Calls

	base     string
	identify func(http.Header) // a function, so that no dump of the client shows the key
	http     *http.Client
	stall    time.Duration
	retry    retryPolicy
	waiting  func(error, time.Duration)
	jitter   func() float64 // at least 0 and below 1
}

// New makes a client. It sends nothing.
func New(c Config) (*Client, error) {
	base, err := checkURL(c.URL)
	if err != nil {
		return nil, err
	}
	if strings.ContainsFunc(c.Key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("apiclient: the key holds characters that no key has")
	}
	if c.Attempts < 0 {
		return nil, errors.New("apiclient: Attempts is negative")
	}
	client := &Client{
		base: base, identify: identity(c.Key, c.UserAgent), http: c.HTTP, stall: stallTimeout, jitter: rand.Float64,
		retry:   retryPolicy{attempts: or(c.Attempts, 4), patience: c.Patience},
		waiting: c.Waiting,
	}
	if client.http == nil {
		client.http = http.DefaultClient
	}
	if client.waiting == nil {
		client.waiting = func(error, time.Duration) {}
	}
	client.Calls = callsOf(client)
	return client, nil
}

func checkURL(text string) (base string, err error) {
	u, err := url.Parse(text)
	switch {
	case err != nil: // its text repeats the URL, which may hold a password
		return "", errors.New("apiclient: URL cannot be parsed")
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return "", errors.New("apiclient: URL must be an absolute http or https URL")
	case u.User != nil, u.RawQuery != "", u.Fragment != "":
		return "", errors.New("apiclient: URL must have no user, query or fragment")
	}
	return strings.TrimSuffix(u.String(), "/"), nil
}

// identity says who calls, with which program.
func identity(key, program string) func(http.Header) {
	return func(h http.Header) {
		if program != "" && h.Get("User-Agent") == "" {
			h.Set("User-Agent", program)
		}
		if key != "" && h.Get("Authorization") == "" {
			h.Set("Authorization", "Bearer "+key)
		}
	}
}

func or[T comparable](value, otherwise T) T {
	var zero T
	if value == zero {
		return otherwise
	}
	return value
}
