package spec

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/fault"
)

var talkingHTTP = []Scenario{
	{Name: "every answer has a request ID of its own", Play: func(s *Stage) {
		ada := s.Customer("pro")
		seen := map[string]bool{}
		for _, r := range []Request{
			{Method: "GET", Path: "/api/v1/databases", Key: ada.Key.Text},
			{Method: "GET", Path: "/api/v1/databases", Key: ada.Key.Text},
			{Method: "GET", Path: "/api/v1/databases", From: s.someAddress()},
			{Method: "GET", Path: "/api/v1/nothing", Key: ada.Key.Text},
			{Method: "PUT", Path: "/api/v1/databases", Key: ada.Key.Text},
			{Method: "GET", Path: "/api/v1/databases/x", Key: ada.Key.Text},
		} {
			id := s.sends(r).Header.Get("X-Request-Id")
			s.That(id != "" && !seen[id], "%s %s has the request ID %q", r.Method, r.Path, id)
			seen[id] = true
		}
	}},
	{Name: "an answer to a valid key tells the limit; a refusal for too many tells when to come back",
		Play: func(s *Stage) {
			ada, made := s.Owner()
			send := func() Answer {
				return s.sends(Request{Method: "PATCH", Path: made.path("/environment"), Key: ada.Key.Text,
					Header: jsonHeader, Body: []byte(`{"environment":null}`)})
			}
			first := send()
			s.That(first.number(s, "X-RateLimit-Limit") == s.Writes && first.number(s, "X-RateLimit-Remaining") == s.Writes-1 &&
				first.number(s, "X-RateLimit-Reset") > 0, "the headers are %v", first.Header)
			last := first
			for n := 0; last.Status == 200 && n < 2*s.Writes; n++ {
				last = send()
			}
			s.Refused(last.refusal(), "RATE_LIMITED")
			s.That(last.Status == 429 && last.number(s, "Retry-After") > 0 && last.number(s, "X-RateLimit-Remaining") == 0,
				"%d %v", last.Status, last.Header)
		}},
	{Name: "an address that keeps knocking without a key is turned away, another is not",
		Play: func(s *Stage) {
			stranger := Request{Method: "GET", Path: "/api/v1/databases", From: s.someAddress()}
			answer := s.sends(stranger)
			for n := 0; answer.Status == 401 && n < 200; n++ {
				answer = s.sends(stranger)
			}
			s.Refused(answer.refusal(), "RATE_LIMITED")
			s.That(answer.number(s, "Retry-After") > 0, "the headers are %v", answer.Header)
			stranger.From = s.someAddress()
			s.That(s.sends(stranger).Status == 401, "another address is turned away, too")
			s.Customer("pro").SeesAll()
		}},
	{Name: "errors have the one envelope, also for what is no route", Play: func(s *Stage) {
		ada := s.Customer("pro")
		for _, c := range []struct {
			method, path string
			code         fault.Code
			status       int
		}{
			{"GET", "/api/v1/nothing", "ROUTE_NOT_FOUND", 404},
			{"PUT", "/api/v1/databases", "METHOD_NOT_ALLOWED", 405},
			{"GET", "/api/v1/databases/NOT-A-UUID", "VALIDATION_ERROR", 400},
			{"GET", "/api/v1/databases/" + nobodysID, "DATABASE_NOT_FOUND", 404},
			{"GET", "/api/v1/operations/" + nobodysID, "OPERATION_NOT_FOUND", 404},
		} {
			answer := s.sends(Request{Method: c.method, Path: c.path, Key: ada.Key.Text})
			s.Refused(answer.refusal(), c.code)
			s.That(answer.Status == c.status, "%s %s is %d; want %d", c.method, c.path, answer.Status, c.status)
		}
	}},
	{Name: "the service describes every route", Play: func(s *Stage) {
		answer := s.sends(Request{Method: "GET", Path: "/api/v1/openapi.json", From: s.someAddress()})
		var description struct {
			OpenAPI string
			Paths   map[string]map[string]json.RawMessage
		}
		s.OK(json.Unmarshal(answer.Body, &description))
		s.That(strings.HasPrefix(description.OpenAPI, "3.1"), "it is OpenAPI %q", description.OpenAPI)
		for _, route := range s.Routes {
			_, described := description.Paths[route.Path][strings.ToLower(route.Method)]
			s.That(described, "%s is not described", route)
		}
	}},
	{Name: "a backup comes as a gzip attachment", Play: func(s *Stage) {
		ada, made := s.Owner()
		backup := ada.FinishesBackup(made.ID)
		path := made.path("/backups/" + string(backup))
		answer := s.sends(Request{Method: "GET", Path: path, Key: ada.Key.Text})
		s.That(answer.Status == 200 && answer.Header.Get("Content-Type") == "application/gzip" &&
			strings.HasPrefix(answer.Header.Get("Content-Disposition"), "attachment") &&
			strings.Contains(answer.Header.Get("Content-Disposition"), string(backup)) &&
			answer.number(s, "Content-Length") == len(answer.Body), "%d %v", answer.Status, answer.Header)
		rest := s.sends(Request{Method: "GET", Path: path, Key: ada.Key.Text, Header: map[string]string{
			"Range": "bytes=10-", "If-Range": answer.Header.Get("ETag"),
		}})
		s.That(rest.Status == 206 && string(rest.Body) == string(answer.Body[10:]), "after 10 bytes: %d %v", rest.Status, rest.Header)
	}},
	{Name: "what holds a password is not cached", Play: func(s *Stage) {
		ada := s.Customer("pro")
		answer := s.sends(Request{Method: "POST", Path: "/api/v1/databases", Key: ada.Key.Text, Header: jsonHeader,
			Body: fmt.Appendf(nil, `{"name":%q,"displayName":"D"}`, s.Name("orders"))})
		s.That(answer.Status == 201 && answer.Header.Get("Cache-Control") == "no-store", "%d %v", answer.Status, answer.Header)
	}},
}

var jsonHeader = map[string]string{"Content-Type": "application/json"}

// Request is an HTTP request as it stands, good or bad. Without a Key it has no Authorization header.
type Request struct {
	Method, Path string
	Key          string
	From         string // the client's address, as the service's proxy tells it
	Header       map[string]string
	Body         []byte
}

// Answer is an HTTP answer.
type Answer struct{ apiclient.Response }

func (s *Stage) sends(r Request) Answer {
	s.Helper()
	header := http.Header{}
	for name, value := range r.Header {
		header.Set(name, value)
	}
	if r.From != "" {
		header.Set(ForwardedFor, r.From)
	}
	a := must(s.Hosts[1](r.Key).Do(ctx, apiclient.Request{Method: r.Method, Path: r.Path, Header: header, Body: r.Body}))(s)
	return Answer{a}
}

// someAddress is a client address that nobody else has.
func (s *Stage) someAddress() string {
	name := s.Name("")
	return fmt.Sprintf("2001:db8:%x:%x::1", name[1:3], name[3:5])
}

func (a Answer) number(s *Stage, header string) int {
	s.Helper()
	n, err := strconv.Atoi(a.Header.Get(header))
	s.That(err == nil, "the header %s is %q", header, a.Header.Get(header))
	return n
}

// refusal reads the error of an answer, which is exactly the envelope of the spec; nil where the request went through.
func (a Answer) refusal() error {
	if a.Status < 400 {
		return nil
	}
	var envelope wire.Error
	if err := json.Unmarshal(a.Body, &envelope); err != nil || envelope.Error.Code == "" || envelope.Error.Details == nil {
		return fmt.Errorf("status %d without an error in the envelope: %.200q", a.Status, a.Body)
	}
	return &apiclient.Error{Status: a.Status, ErrorBody: envelope.Error}
}
