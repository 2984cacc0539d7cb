package spec

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
)

var talkingHTTP = []Scenario{
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
