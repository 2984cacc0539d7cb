package fault

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"
)

// declared reads the constants of type Code out of the source, so that no list can forget one.
func declared(t *testing.T) map[string]Code {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "codes.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	codes := map[string]Code{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		if kind, ok := spec.Type.(*ast.Ident); !ok || kind.Name != "Code" {
			return true
		}
		text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		codes[spec.Names[0].Name] = Code(text)
		return true
	})
	return codes
}

func TestEveryConstantStandsInTheTableOnce(t *testing.T) {
	rows := map[Code]int{}
	for _, e := range Table {
		rows[e.Code]++
		if e.Meaning == "" || strings.ContainsAny(e.Meaning, "|\n") {
			t.Errorf("%s: its meaning does not fit into a table: %q", e.Code, e.Meaning)
		}
	}
	codes := declared(t)
	for name, code := range codes {
		if rows[code] != 1 {
			t.Errorf("%s stands in the table %d times", name, rows[code])
		}
		if string(code) != strings.ToUpper(string(code)) || strings.Trim(string(code), "ABCDEFGHIJKLMNOPQRSTUVWXYZ_3") != "" {
			t.Errorf("%s: %q is no code", name, code)
		}
	}
	if len(codes) != len(Table) || len(rows) != len(Table) {
		t.Errorf("%d constants, %d rows, %d codes in them", len(codes), len(Table), len(rows))
	}
}

// statuses is the spec's table and what the decisions add to it, written a second time.
var statuses = map[int]string{
	400: "VALIDATION_ERROR INVALID_JSON INVALID_BACKUP_FILENAME INVALID_WEBHOOK_ENDPOINT",
	401: "UNAUTHORIZED",
	403: "KEY_SCOPE_DENIED ACCOUNT_SUSPENDED PLAN_API_ACCESS_REQUIRED PLAN_LIMIT FORBIDDEN LOGIN_REQUIRED " +
		"FEATURE_NOT_AVAILABLE",
	404: "DATABASE_NOT_FOUND BACKUP_NOT_FOUND DELETION_BACKUP_NOT_AVAILABLE CERTIFICATE_NOT_FOUND WEBHOOK_NOT_FOUND " +
		"OPERATION_NOT_FOUND " +
		"ROLE_NOT_FOUND MEMBER_NOT_FOUND INVITATION_NOT_FOUND ALLOWLIST_ENTRY_NOT_FOUND PREVIEW_NOT_FOUND UPLOAD_NOT_FOUND " +
		"NAMESPACE_NOT_FOUND TRUST_NOT_FOUND ROUTE_NOT_FOUND",
	405: "METHOD_NOT_ALLOWED",
	408: "REQUEST_TIMEOUT",
	409: "MANAGED_ROLE_CONFLICT CONNECT_GRANT_REQUIRED CUSTOM_ROLE_REQUIRES_V3_CLONE ROLE_DEPENDENCIES " +
		"RESTORE_OPERATION_TERMINAL EXTENSION_MUTATION_UNAVAILABLE QUERY_TIMEOUT_CLONE_REQUIRES_RECONFIGURATION " +
		"DATABASE_STATE_CONFLICT PREVIEW_CONFLICT PREVIEW_LEASE_ENDED QUERY_TIMEOUT_CONFLICT LEGACY_ROLE_CONFLICT " +
		"MEMBER_CONFLICT BACKUP_CONFLICT BACKUP_NOT_VERIFIED POINT_NOT_RECOVERABLE",
	411: "LENGTH_REQUIRED",
	413: "PAYLOAD_TOO_LARGE",
	415: "UNSUPPORTED_MEDIA_TYPE",
	429: "RATE_LIMITED",
	431: "HEADER_TOO_LARGE",
	500: "AGENT_ERROR INTERNAL_ERROR WEBHOOK_ROTATION_FAILED WEBHOOK_UPDATE_FAILED",
	503: "AGENT_ROUTE_UNAVAILABLE BACKUP_STORAGE_UNAVAILABLE SERVER_BUSY FEATURE_DISABLED MAINTENANCE",
	507: "BACKUP_STORAGE_FULL",
	0:   "EXTENSION_PREPARATION_FAILED UPLOAD_INCOMPLETE RESTORE_SHRINKS",
}

func TestStatuses(t *testing.T) {
	want := map[Code]int{}
	for status, codes := range statuses {
		for _, c := range strings.Fields(codes) {
			want[Code(c)] = status
		}
	}
	for _, e := range Table {
		status, known := want[e.Code]
		if !known || e.Status != status || !e.Code.Known() {
			t.Errorf("%s: %d, want %d", e.Code, e.Status, status)
		}
		if answered := e.Code.Status(); answered != e.Status && (e.Status != 0 || answered != 500) {
			t.Errorf("%s is answered with %d", e.Code, answered)
		}
		delete(want, e.Code)
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
	if Code("NO_SUCH_CODE").Known() || Code("NO_SUCH_CODE").Status() != 500 {
		t.Error("a code outside the table is known")
	}
}

func TestErrors(t *testing.T) {
	cause := errors.New("dial tcp 10.0.0.1:8090")
	err := fmt.Errorf("above: %w", Wrap(cause, AgentError, "the server %s", "is gone"))
	switch {
	case CodeOf(err) != AgentError || !Has(err, AgentError) || Has(err, InternalError):
		t.Error(err)
	case !errors.Is(err, cause) || !errors.Is(err, New(AgentError, "")) || errors.Is(err, New(InternalError, "")):
		t.Error("causes and codes are not found")
	}
	var e *Error
	if !errors.As(err, &e) || e.Message != "the server is gone" || strings.Contains(e.Message, "10.0.0.1") {
		t.Errorf("%+v", e)
	}
	if CodeOf(cause) != InternalError || CodeOf(nil) != InternalError || Has(nil, InternalError) {
		t.Error("what carries no code is not internal")
	}
}

func TestLine(t *testing.T) {
	for want, err := range map[string]error{
		"one":            errors.New("one"),
		"one; two":       errors.Join(errors.New("one"), errors.New("two\n")),
		"a: one; b; two": fmt.Errorf("a: %w", errors.Join(errors.New("one\r\nb"), errors.New("two"))),
	} {
		if got := Line(err); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestInvalid(t *testing.T) {
	e := Invalid("name", "must have %d%%", 3)
	if e.Code != ValidationError || e.Message != "name: must have 3%" || len(e.Details) != 1 ||
		e.Details[0] != (Detail{Field: "name", Issue: "must have 3%"}) || e.Error() != "VALIDATION_ERROR: name: must have 3%" {
		t.Errorf("%+v", e)
	}
}
