package apiclient_test

import (
	"bytes"
	_ "embed"
	"fmt"
	"go/format"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template"
	"unicode"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/adapters/httpapi"
	"github.com/pgherd/pgherd/adapters/httpapi/serve"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/controlplane"
)

const clientFile = "methods.go"

//go:embed testdata/methods.go.tmpl
var clientTemplate string

// The methods of the Go client follow from the table of routes. "make generate" writes them.
func TestGoldenClient(t *testing.T) {
	want := check.Must(clientMethods(httpapi.Routes(&controlplane.ControlPlane{})))(t)
	if os.Getenv("PGHERD_UPDATE_GOLDEN") != "" {
		check.NoError(t, os.WriteFile(clientFile, want, 0o644))
	}
	if have := check.Must(os.ReadFile(clientFile))(t); !bytes.Equal(have, want) {
		t.Errorf("%s does not follow from the table of routes any more; run make generate", clientFile)
	}
}

// clientGroup is a group of methods.
type clientGroup struct {
	Name, Doc string
	Methods   []clientMethod
}

// clientMethod is a method: what it is called, its arguments between the context and the options, and what it does.
type clientMethod struct {
	Name, Doc, Arguments, Results, Calls string
}

// groupNames are those of tags that have a shorter name, or the calls of another group, in the client.
var groupNames = map[string]string{
	"Additional roles": "Roles", "Managed logins": "Logins", "Clones": "Databases", "Deletion": "Databases",
}

// groupNouns are what the calls of a group are about. A method is called as its route, without that. Elsewhere it is the name of
// the group.
var groupNouns = map[string]string{
	"Allowlist": "AllowlistEntr(y|ies)", "CITokens": "Token", "Certificates": "BackupCertificate|Certificate",
	"Restores": "ManagedRestore|Backup",
}

func clientMethods(table []serve.Route) ([]byte, error) {
	var groups []*clientGroup
	for i := range table {
		r := &table[i]
		name, shared := groupNames[r.Tag.Name]
		if !shared {
			for _, word := range strings.Fields(r.Tag.Name) {
				name += capital(word)
			}
		}
		at := slices.IndexFunc(groups, func(g *clientGroup) bool { return g.Name == name })
		if at < 0 {
			at = len(groups)
			groups = append(groups, &clientGroup{Name: name})
		}
		if groups[at].Doc == "" || !shared {
			groups[at].Doc = small(r.Tag.Meaning)
		}
		if !r.Body.IsStream() { // an upload goes on where it broke off: it is written by hand
			groups[at].Methods = append(groups[at].Methods, methodOf(name, r))
		}
	}
	var text bytes.Buffer
	if err := template.Must(template.New("methods").Parse(clientTemplate)).Execute(&text, groups); err != nil {
		return nil, err
	}
	return format.Source(text.Bytes())
}

// methodOf is the call of a route.
func methodOf(group string, r *serve.Route) clientMethod {
	noun := groupNouns[group]
	if noun == "" {
		noun = strings.TrimSuffix(group, "s") + "s?"
	}
	name := capital(r.Name)
	if found := regexp.MustCompile(noun).FindStringIndex(name); found != nil {
		name = name[:found[0]] + name[found[1]:]
	}
	m := clientMethod{Name: name, Doc: docOf(name, r)}
	request := m.request(r)
	read, result := reader(r)
	m.Results = "(" + result + ", error)"
	m.Calls = fmt.Sprintf("%s(ctx, x.c, %s, opts)", read, request)
	switch {
	case read == "tell":
		m.Results = "error"
	case read == "download":
		m.Calls = fmt.Sprintf("x.c.download(ctx, %s, opts)", request)
	case read == "removal":
		m.Calls = fmt.Sprintf("%s(ctx, x.c, roleID, %s, opts)", read, request)
	case r.List != serve.NoList:
		m.Results, m.Calls = result, fmt.Sprintf("%s{x.c, %s}", result, request)
	}
	return m
}

// docOf says what a call sends and does, and what its answers mean where it has several.
func docOf(name string, r *serve.Route) string {
	text := fmt.Sprintf("%s sends %s %s: %s.", name, r.Method, strings.TrimPrefix(r.Path, serve.Prefix), small(r.Summary))
	if len(r.Answers) > 1 {
		for _, a := range r.Answers {
			if a.Meaning != "" {
				text += fmt.Sprintf(" %d: %s.", a.Status, small(strings.TrimSuffix(a.Meaning, ".")))
			}
		}
	}
	return comment(text)
}

// request is what makes the request. It adds the arguments that this needs.
func (m *clientMethod) request(r *serve.Route) string {
	pattern, values := strings.TrimPrefix(r.Path, serve.Prefix), ""
	for _, name := range r.Parameters() {
		argument, kind := parameterOf(r.Path, name)
		pattern = strings.Replace(pattern, "{"+name+"}", "%s", 1)
		values += ", " + argument
		m.Arguments += ", " + argument + " " + kind
	}
	send := map[string]string{
		http.MethodGet: "get", http.MethodPost: "post", http.MethodPatch: "patch", http.MethodDelete: "remove",
	}[r.Method]
	body := ""
	switch {
	case r.Body.IsJSON():
		m.Arguments += ", b " + r.Body.Type().String()
		body = "b, "
	case r.Method == http.MethodPost:
		body = "nil, "
	}
	request := fmt.Sprintf("%s(%s%q%s)", send, body, pattern, values)
	for _, q := range r.Query {
		kind := "string"
		if slices.Equal(q.Enum, []string{"true"}) {
			kind = "bool"
		}
		m.Arguments += ", " + q.Name + " " + kind
		request += fmt.Sprintf(".with(%q, %s)", q.Name, q.Name)
	}
	if r.Idempotency != serve.Absent {
		request += ".withKey()"
	}
	if r.Repeatable {
		request += ".mayRepeat()"
	}
	if gone := goneCode(r); gone != "" {
		request += ".ofGone(fault." + gone + ")"
	}
	return request
}

// goneCode is how the API says that what a call removes is gone already; empty where it does not, or the call removes nothing.
func goneCode(r *serve.Route) (name string) {
	if _, removal := r.Answers[0].Body.(wire.RoleRemoval); r.Method != http.MethodDelete && !removal {
		return ""
	}
	for _, code := range r.Refusals {
		if strings.HasSuffix(string(code), "_NOT_FOUND") {
			for word := range strings.SplitSeq(strings.ToLower(string(code)), "_") {
				name += capital(word)
			}
			return name
		}
	}
	return ""
}

// parameterOf is the argument for a path parameter, and its type.
func parameterOf(path, name string) (argument, kind string) {
	switch name {
	case serve.FilenameParameter:
		return name, "backup.Filename"
	case serve.LoginParameter:
		return name, "database.Login"
	case "id": // of what the path begins with
		collection, _, _ := strings.Cut(strings.TrimPrefix(path, serve.Prefix+"/"), "/")
		name = strings.TrimSuffix(collection, "s") + "Id"
	}
	argument = strings.TrimSuffix(name, "Id") + "ID"
	if name == "entryId" {
		return argument, "id.AllowlistEntryID"
	}
	return argument, "id." + capital(argument)
}

// reader is the function that reads the answer of a route, and what it returns.
func reader(r *serve.Route) (name, result string) {
	if r.SendsRests() {
		return "download", "*Download"
	}
	body := r.Answers[0].Body
	if body == nil {
		return "tell", ""
	}
	t := reflect.TypeOf(body)
	generic, _, _ := strings.Cut(t.Name(), "[")
	switch generic {
	case "Page":
		return "", "Pages[" + t.Field(0).Type.Elem().String() + "]"
	case "Data", "DataWithMessage":
		field, _ := t.FieldByName("Data")
		return "data[" + field.Type.String() + "]", field.Type.String()
	case "Roles":
		return "roles[" + t.Field(0).Type.Elem().String() + "]", t.Field(0).Type.String()
	case "RoleRemoval":
		return "removal", t.String()
	}
	return "ask[" + t.String() + "]", t.String()
}

func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// small begins a text with a small letter, but not an abbreviation.
func small(text string) string {
	if len(text) > 1 && unicode.IsUpper(rune(text[1])) {
		return text
	}
	return strings.ToLower(text[:1]) + text[1:]
}

// comment breaks a text into lines of a comment.
func comment(text string) string {
	var lines strings.Builder
	width := 0
	for _, word := range strings.Fields(text) {
		if width == 0 || width+len(word) >= 130 {
			if width > 0 {
				lines.WriteByte('\n')
			}
			lines.WriteString("//")
			width = len("//")
		}
		lines.WriteString(" " + word)
		width += 1 + len(word)
	}
	return lines.String()
}

// Signature is the head of the method, in one line or in several.
func (m clientMethod) Signature(group string) string {
	head, arguments := fmt.Sprintf("func (x %s) %s(", group, m.Name), "ctx context.Context"+m.Arguments+", opts ...Option"
	if strings.HasPrefix(m.Results, "Pages[") { // which take context and options themselves
		arguments = strings.TrimPrefix(m.Arguments, ", ")
	}
	tail := ") " + m.Results + " {"
	if len(head+arguments+tail) <= 130 {
		return head + arguments + tail
	}
	return head + "\n" + arguments + ",\n" + tail
}

// Body is what the method does.
func (m clientMethod) Body() string {
	if len("\treturn "+m.Calls) <= 130 {
		return "return " + m.Calls
	}
	begin := slices.IndexFunc([]byte(m.Calls), func(c byte) bool { return c == '(' })
	arguments := strings.SplitN(m.Calls[begin+1:], ", ", 3) // ctx, x.c, and the request
	request, _ := strings.CutSuffix(arguments[2], ", opts)")
	lead := ""
	if rest, found := strings.CutPrefix(request, "roleID, "); found {
		lead, request = "roleID, ", rest
	}
	return fmt.Sprintf("request := %s\nreturn %s(ctx, x.c, %srequest, opts)", request, m.Calls[:begin], lead)
}
