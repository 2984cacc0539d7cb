package serve

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
)

// component is a named schema as the document has it.
func (s *schemas) component(t *testing.T, name string) string {
	t.Helper()
	schema, known := s.named[name]
	text, err := json.Marshal(schema)
	if !known || err != nil {
		t.Fatalf("%s: %v among %d", name, err, len(s.named))
	}
	return string(text)
}

// Every rule of package wire, in one field each.
func TestSchemaOfFields(t *testing.T) {
	type Inner struct {
		Label string `json:"label" example:"a"`
	}
	type Optional struct {
		Reason string `json:"reason" required:"false"`
	}
	type Fields struct {
		Inner
		*Optional
		ID      id.RoleID          `json:"id"`
		At      *time.Time         `json:"at"`
		Absent  *time.Time         `json:"absent,omitzero"`
		Either  *database.Schedule `json:"either,omitzero" nullable:"true"`
		Some    *database.Status   `json:"some" enum:"active,stopped"`
		Status  database.Schedule  `json:"status"`
		Inners  []Inner            `json:"inners"`
		One     *Inner             `json:"one"`
		Size    int64              `json:"size" minimum:"1"`
		Result  *json.RawMessage   `json:"result"`
		Details map[string]string  `json:"details"`
		Extra   map[string]any     `json:",embed"`
	}
	s := newSchemas()
	check.Must(s.of(Fields{}, false))(t)
	const (
		uuid = `"examples":["0b5c1f4e-7a52-4f0d-9d3e-1c2b3a4d5e6f"],"type":"string","format":"uuid"`
		when = `{"examples":["2026-03-01T11:30:00Z"],"type":["null","string"],"format":"date-time"}`
		kind = `{"$ref":"#/components/schemas/DatabaseSchedule"}`
		ref  = `{"$ref":"#/components/schemas/ServeInner"}`
	)
	want := `{"required":["label","id","at","some","status","inners","one","size","result","details"],"properties":{` +
		`"absent":` + strings.Replace(when, `["null","string"]`, `"string"`, 1) + `,"at":` + when + `,` +
		`"details":{"additionalProperties":{"type":"string"},"type":"object"},` +
		`"either":{"anyOf":[` + kind + `,{"type":"null"}]},"id":{` + uuid + `},"inners":{"items":` + ref + `,"type":"array"},` +
		`"label":{"examples":["a"],"type":"string"},"one":{"anyOf":[` + ref + `,{"type":"null"}]},"reason":{"type":"string"},` +
		`"result":{"type":["object","null"]},"size":{"minimum":1,"type":"integer","format":"int64"},` +
		`"some":{"enum":["active","stopped",null],"type":["string","null"]},"status":` + kind + `},"type":"object"}`
	if got := s.component(t, "ServeFields"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := s.component(t, "DatabaseSchedule"); got != `{"enum":["none","daily"],"type":"string"}` {
		t.Errorf("got %s", got)
	}
}

func TestSchemaOfABodyIsExact(t *testing.T) {
	s := newSchemas()
	check.Must(s.of(&wire.SetEnvironment{}, true))(t)
	if got := s.component(t, "SetEnvironment"); !strings.Contains(got, `"additionalProperties":false`) {
		t.Errorf("got %s", got)
	}
}

func TestSchemaNames(t *testing.T) {
	s := newSchemas()
	for want, value := range map[string]any{
		"DatabasePage": wire.Page[wire.Database]{}, "AllowlistEntryListData": wire.Data[[]wire.AllowlistEntry]{},
		"EnvironmentChangeDataWithMessage": wire.DataWithMessage[wire.EnvironmentChange]{}, "ErrorCode": wire.Error{},
	} {
		check.Must(s.of(value, false))(t)
		s.component(t, want)
	}
}

// A tag that narrows an enumeration can name only values that core knows.
func TestSchemaOfAWrongValue(t *testing.T) {
	type wrong struct {
		Status database.Status `json:"status" enum:"active,unheard-of"`
	}
	if _, err := newSchemas().of(wrong{}, false); err == nil || !strings.Contains(err.Error(), "unheard-of") {
		t.Errorf("got %v", err)
	}
}
