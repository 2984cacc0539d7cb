package serve

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/fault"
)

type strictCase struct {
	name, body string
	code       fault.Code
	field      string // in details; empty for INVALID_JSON
}

var strictCases = []strictCase{
	{"unknown", `{"name":"a","more":1}`, fault.ValidationError, "more"},
	{"duplicate", `{"name":"a","name":"a"}`, fault.ValidationError, "name"},
	{"duplicate by escape", `{"name":"a","n\u0061me":"b"}`, fault.ValidationError, "name"},
	{"other case", `{"Name":"a"}`, fault.ValidationError, "Name"},
	{"trailing value", `{"name":"a"} {}`, fault.ValidationError, "body"},
	{"trailing garbage", `{"name":"a"}x`, fault.ValidationError, "body"},
	{"wrong type string", `{"name":1}`, fault.ValidationError, "name"},
	{"wrong type object", `{"name":{"a":1}}`, fault.ValidationError, "name"},
	{"wrong type integer", `{"name":"a","count":"1"}`, fault.ValidationError, "count"},
	{"fraction", `{"name":"a","count":1.5}`, fault.ValidationError, "count"},
	{"whole fraction", `{"name":"a","count":1.0}`, fault.ValidationError, "count"},
	{"exponent", `{"name":"a","count":1e2}`, fault.ValidationError, "count"},
	{"overflow", `{"name":"a","count":92233720368547758070}`, fault.ValidationError, "count"},
	{"wrong type boolean", `{"name":"a","confirm":"true"}`, fault.ValidationError, "confirm"},
	{"wrong type nullable", `{"name":"a","environment":7}`, fault.ValidationError, "environment"},
	{"null required", `{"name":null}`, fault.ValidationError, "name"},
	{"null optional", `{"name":"a","count":null}`, fault.ValidationError, "count"},
	{"missing", `{}`, fault.ValidationError, "name"},
	{"array", `[]`, fault.ValidationError, "body"},
	{"null", `null`, fault.ValidationError, "body"},
	{"string", `"name"`, fault.ValidationError, "body"},
	{"number", `7`, fault.ValidationError, "body"},
	{"invalid UTF-8", "{\"name\":\"\xff\"}", fault.ValidationError, "name"},
	{"lone surrogate", `{"name":"\ud800"}`, fault.ValidationError, "name"},
	{"invalid UTF-8 in a name", "{\"\xff\":1}", fault.ValidationError, "body"},
	{"empty name", `{"":1}`, fault.ValidationError, "body"},
	{"not JSON", `name=a`, fault.InvalidJSON, ""},
	{"cut off", `{"name":"a"`, fault.InvalidJSON, ""},
	{"cut off after unknown", `{"more":1,`, fault.InvalidJSON, ""},
	{"single quotes", `{'name':'a'}`, fault.InvalidJSON, ""},
	{"comment", `{"name":"a"/**/}`, fault.InvalidJSON, ""},
	{"trailing comma", `{"name":"a",}`, fault.InvalidJSON, ""},
	{"byte order mark", "\ufeff{\"name\":\"a\"}", fault.InvalidJSON, ""},
	{"control character", "{\"name\":\"a\nb\"}", fault.InvalidJSON, ""},
	{"NaN", `{"name":"a","count":NaN}`, fault.InvalidJSON, ""},
	{"leading zero", `{"name":"a","count":01}`, fault.InvalidJSON, ""},
	{"only spaces", "  \n", fault.InvalidJSON, ""},
	{"deep", strings.Repeat("[", 20_000), fault.InvalidJSON, ""},
}

var renameShape = shapeOf(reflect.TypeFor[renameBody]())

func TestStrictBody(t *testing.T) {
	st := open(t)
	l := st.dial(t)
	for _, c := range strictCases {
		t.Run(c.name, func(t *testing.T) {
			l.say(withBody("PATCH", thing, anyKey, c.body))
			r := l.hear(cutBy)
			r.expect(t, 400, c.code)
			var e struct {
				Error struct{ Details []fault.Detail }
			}
			check.NoError(t, json.Unmarshal([]byte(r.text), &e))
			switch {
			case c.field == "" && len(e.Error.Details) != 0:
				t.Errorf("details %v, want none", e.Error.Details)
			case c.field != "" && (len(e.Error.Details) != 1 || e.Error.Details[0].Field != c.field || e.Error.Details[0].Issue == ""):
				t.Errorf("details %v, want the field %s", e.Error.Details, c.field)
			}
			if strings.Contains(r.text, "Go ") || strings.Contains(r.text, "serve") {
				t.Errorf("the answer speaks of Go: %s", r.text)
			}
		})
	}
	if n := st.handled.Load(); n != 0 {
		t.Errorf("%d handlers ran", n)
	}
}

func TestBodyLimitIsExact(t *testing.T) {
	st := open(t)
	l := st.dial(t)
	fill := func(n int) string { return `{"name":"` + strings.Repeat("a", n-len(`{"name":""}`)) + `"}` }
	l.say(withBody("PATCH", thing, anyKey, fill(bodyLimit)))
	if r := l.hear(cutBy); r.StatusCode != 200 {
		t.Fatalf("64 KiB: %d", r.StatusCode)
	}
	l.say(withBody("PATCH", thing, anyKey, fill(bodyLimit+1)))
	l.hear(cutBy).expect(t, 413, fault.PayloadTooLarge)
}

func TestMediaTypes(t *testing.T) {
	st := open(t)
	for lines, status := range map[string]int{
		"Content-Type: application/json":                               200,
		"Content-Type: Application/JSON; charset=utf-8":                200,
		"Content-Type: application/json\r\nContent-Encoding: gzip":     415,
		"Content-Type: application/jsonx":                              415,
		"Content-Type: application/x-www-form-urlencoded":              415,
		"Content-Type: text/plain":                                     415,
		"X-None: 1":                                                    415,
		"Content-Type: application/merge-patch+json":                   415,
		"Content-Encoding: identity\r\nContent-Type: application/json": 200,
	} {
		if r := st.ask(t, head("PATCH", thing, anyKey, lines, "Content-Length: 12")+`{"name":"a"}`); r.StatusCode != status {
			t.Errorf("%s: %d, want %d", lines, r.StatusCode, status)
		}
	}
}

func TestDecodedValues(t *testing.T) {
	var b renameBody
	text := ` {"name":"a\u0062","count":7,"confirm":true,"environment":null} `
	check.NoError(t, decodeStrictly([]byte(text), renameShape, &b))
	if b.Name != "ab" || *b.Count != 7 || !*b.Confirm || b.Environment != nil {
		t.Errorf("got %+v", b)
	}
	var c renameBody
	check.NoError(t, decodeStrictly([]byte(`{"name":"a","environment":"staging"}`), renameShape, &c))
	if c.Count != nil || *c.Environment != "staging" {
		t.Errorf("got %+v", c)
	}
}

func TestEveryMissingFieldIsNamed(t *testing.T) {
	type two struct {
		A string  `json:"a"`
		B *string `json:"b"`
	}
	var v two
	shape := shapeOf(reflect.TypeFor[two]())
	check.NoError(t, decodeStrictly([]byte(`{"a":"","b":null}`), shape, &v))
	err := decodeStrictly([]byte(`{}`), shape, &v)
	if e, ok := err.(*fault.Error); !ok || len(e.Details) != 2 || e.Details[0].Field != "a" || e.Details[1].Field != "b" {
		t.Errorf("got %v", err)
	}
}

func TestLongFieldNamesAreNotRepeatedWhole(t *testing.T) {
	var b renameBody
	err := decodeStrictly([]byte(`{"`+strings.Repeat("é", 5000)+`":1}`), renameShape, &b)
	if e, ok := err.(*fault.Error); !ok || len([]rune(e.Details[0].Field)) != longestEcho+3 {
		t.Errorf("got %v", err)
	}
}

// FuzzDecodeStrictly holds the decoder to what encoding/json, which is laxer, makes of the same text.
func FuzzDecodeStrictly(f *testing.F) {
	for _, c := range strictCases {
		f.Add([]byte(c.body))
	}
	for _, ok := range []string{
		`{"name":"a"}`, `{"name":"","count":-1}`, ` {"confirm":false,"name":"x","environment":"staging"}` + "\n",
	} {
		f.Add([]byte(ok))
	}
	s := renameShape
	f.Fuzz(func(t *testing.T, text []byte) {
		var got renameBody
		err := decodeStrictly(text, s, &got)
		if err != nil {
			if e, ok := err.(*fault.Error); !ok || e.Code != fault.ValidationError && e.Code != fault.InvalidJSON {
				t.Fatalf("an error of another kind: %v", err)
			}
			if fault.Has(err, fault.InvalidJSON) && json.Valid(text) {
				t.Fatalf("INVALID_JSON for valid JSON %q", text)
			}
			return
		}
		var lax struct {
			Name    *string
			Count   *int
			Confirm *bool
		}
		if err := json.Unmarshal(text, &lax); err != nil {
			t.Fatalf("accepted %q, which encoding/json refuses: %v", text, err)
		}
		same := reflect.DeepEqual(lax.Count, got.Count) && reflect.DeepEqual(lax.Confirm, got.Confirm)
		if lax.Name == nil || *lax.Name != got.Name || !same {
			t.Fatalf("%q read as %+v", text, got)
		}
	})
}

func TestSyntaxErrorsSayWhere(t *testing.T) {
	for body, where := range map[string]string{
		`{"name":"a","count":01}`: "near byte 21", `{'name':'a'}`: "near byte 1",
		"\ufeff{}": "near byte 0", `{"name":"a"`: "near byte 11",
	} {
		if _, err := oneObject([]byte(body)); err == nil || !strings.Contains(err.Error(), where) {
			t.Errorf("%s: %v, want %s", body, err, where)
		}
	}
}
