package mail

import (
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/core/fault"
)

const token = "s3cr3tT0ken"

func composed(t testing.TB, page string, change func(*Mail)) Message {
	t.Helper()
	var link Link
	if page != "" {
		link = check.Must(ParseLink(page))(t)
	}
	m := pending()
	if change != nil {
		change(&m)
	}
	return m.Compose(token, Pages{Invitation: link}, began)
}

func TestMailSaysWhatTheRecipientNeeds(t *testing.T) {
	m := composed(t, "https://app.example.org/join", nil)
	for _, text := range []string{m.Text, m.HTML} {
		for _, want := range []string{
			"Ada", "Shop", "viewer", "https://app.example.org/join#token=" + token, "29 November 2026, 09:00 UTC", "ignore this mail",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%q is missing in\n%s", want, text)
			}
		}
	}
	if m.Subject != "Ada invites you to the database “Shop”" || m.To != "bob@example.org" || m.At != began || m.ID != "m" {
		t.Errorf("%+v", m)
	}
}

func TestMailWithoutAPageSaysHowToAccept(t *testing.T) {
	m := composed(t, "", nil)
	for _, text := range []string{m.Text, m.HTML} {
		if !strings.Contains(text, token) || !strings.Contains(text, "POST /api/v1/invitations/accept") {
			t.Errorf("nobody can accept with\n%s", text)
		}
	}
	if strings.Contains(m.HTML, "href") {
		t.Errorf("a link to nowhere in\n%s", m.HTML)
	}
}

func TestSubjectHasNoToken(t *testing.T) {
	for _, page := range []string{"", "https://app.example.org/{token}"} {
		if m := composed(t, page, nil); strings.Contains(m.Subject, token) {
			t.Error(m.Subject)
		}
	}
}

// linkable is what mail programs make links of.
var linkable = regexp.MustCompile(`(?i)[a-z]+:/|//|www\.\S|\S+@\S+|[\p{L}\p{N}-]+[.。．｡][\p{L}]{2,}`)

func hostile() *rapid.Generator[string] {
	return rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-z.:/@<>"'&\r\n\t ]{0,300}`), rapid.SampledFrom([]string{
		"", "\u202egro.live", "Your bank\r\n\r\nhttps://evil.example/login", "<a href=https://evil.example>Shop</a>", "evil.example",
		"www.evil.example", "mail eve@evil.example", "javascript:alert(1)", "evil。example", "a\u2028b\u0085c\x00d", "\xff\xfe.org",
		strings.Repeat("long ", 100), "evil\u00ad.example", "x\u200b.example", `"><script>`, "&lt;b&gt;",
	}))
}

// Whatever a customer's names are, the mail has the lines that it has with harmless ones, no markup and no link but its own.
func TestNamesAddNothingButText(t *testing.T) {
	const page = "https://app.example.org/join"
	plain := composed(t, page, nil)
	names := hostile()
	rapid.Check(t, func(t *rapid.T) {
		inviter, database := names.Draw(t, "inviter"), names.Draw(t, "database")
		m := pending()
		m.Inviter, m.Database = inviter, database
		link, err := ParseLink(page)
		if err != nil {
			t.Fatal(err)
		}
		got := m.Compose(token, Pages{Invitation: link}, began)
		if strings.Count(got.Text, "\n") != strings.Count(plain.Text, "\n") || strings.ContainsAny(got.Subject, "\r\n") {
			t.Fatalf("a name adds lines:\n%s", got.Text)
		}
		for _, mark := range []string{"<", `"`} {
			if strings.Count(got.HTML, mark) != strings.Count(plain.HTML, mark) {
				t.Fatalf("a name adds markup:\n%s", got.HTML)
			}
		}
		first, _, _ := strings.Cut(got.Text, "\n")
		if found := linkable.FindString(first); found != "" {
			t.Fatalf("a name adds the link %q:\n%s", found, first)
		}
		if utf8.RuneCountInString(first) > 2*maxName+80 || !utf8.ValidString(first) {
			t.Fatalf("a name is too long, or no text:\n%s", first)
		}
	})
}

func TestParseLink(t *testing.T) {
	for text, want := range map[string]string{
		"https://app.example.org/join":           "https://app.example.org/join#token=T",
		"https://app.example.org":                "https://app.example.org#token=T",
		"https://app.example.org/i/{token}?a=b":  "https://app.example.org/i/T?a=b",
		"https://app.example.org/#/join/{token}": "https://app.example.org/#/join/T",
		"http://localhost:3000/join":             "http://localhost:3000/join#token=T",
		"http://127.0.0.1/join":                  "http://127.0.0.1/join#token=T",
	} {
		link, err := ParseLink(text)
		if err != nil || link.With("T") != want {
			t.Errorf("%s: %q, %v", text, link.With("T"), err)
		}
	}
	for _, text := range []string{
		"", "app.example.org/join", "http://app.example.org/join", "ftp://app.example.org", "https:///join",
		"https://u:p@app.example.org",
		"https://app.example.org/#join", "https://app.example.org/{token}/{token}", "https://{token}.example.org/", "{token}",
		"https://app.example.org\n/", "javascript://localhost/{token}",
	} {
		if _, err := ParseLink(text); !fault.Has(err, fault.ValidationError) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestPagesOfTheDashboard(t *testing.T) {
	for _, address := range []string{"https://db.example.org", "https://db.example.org/"} {
		p, err := DashboardPages(address)
		if err != nil || p.Reset.With("T") != "https://db.example.org/reset/T" ||
			p.Invitation.With("T") != "https://db.example.org/invitation/T" {
			t.Errorf("%s: %+v, %v", address, p, err)
		}
	}
	for _, address := range []string{
		"", "db.example.org", "http://db.example.org", "https://db.example.org/?a=b", "https://{token}.org",
	} {
		if _, err := DashboardPages(address); err == nil || !strings.Contains(err.Error(), "dashboard-url: ") {
			t.Errorf("%q: %v", address, err)
		}
	}
	for kind, leads := range map[Kind]bool{ToInvite: true, ToTell: true, ToWarn: true, ToReset: false, ToWelcome: false} {
		if (Pages{}).Lead(kind) != leads {
			t.Errorf("without a page the link of %s leads somewhere: %t", kind, !leads)
		}
	}
}

func TestCheckRecipient(t *testing.T) {
	for _, good := range []string{
		"a@b", "No-Reply@Example.org", "first.last+tag@sub.example", "o'brien@example.org", strings.Repeat("a", 64) + "@example.org",
	} {
		if err := CheckRecipient(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{
		"", "a", "@b", "a@", "a@b@c", "a b@c", "a@b\r\nBcc: eve@example.org", "a@b\nRCPT TO:<eve@example.org>", "Bob <a@b>", "<a@b>",
		`"a b"@c`, `"a@evil.example> ORCPT=x"@c`, "a@b, c@d", "a@b;c@d", "(x)a@b", "a@[127.0.0.1]", "ünï@example.org",
		" a@b", "a@b ", "\u212a@b",
		"a@exämple.org", "a@b\x00", "a@b\x7f", strings.Repeat("a", 65) + "@example.org", "a@" + strings.Repeat("b", 260),
	} {
		if err := CheckRecipient(bad); !fault.Has(err, fault.ValidationError) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestMailsAboutLoggingIn(t *testing.T) {
	pages := Pages{Invitation: check.Must(ParseLink("https://app.example.org/join"))(t)}
	pages.Reset = check.Must(ParseLink("https://app.example.org/reset"))(t)
	letter := Letter{Kind: ToReset, Recipient: "o'brien@example.org", ExpiresAt: began.Add(30 * time.Minute)}
	reset := New("m", letter, []byte("sealed"), began).Compose(token, pages, began)
	for _, want := range []string{"https://app.example.org/reset#token=" + token, "22 November 2026, 09:30 UTC", "do not forward"} {
		if !strings.Contains(reset.Text, want) || !strings.Contains(reset.HTML, want) {
			t.Errorf("%q is missing in\n%s\n%s", want, reset.Text, reset.HTML)
		}
	}
	if strings.Contains(reset.Subject, token) || !strings.Contains(reset.HTML, "o&#39;brien") || reset.To != letter.Recipient {
		t.Errorf("%+v", reset)
	}
	letter.Kind, letter.ExpiresAt = ToWelcome, began.Add(7*24*time.Hour)
	welcome := New("m", letter, []byte("sealed"), began).Compose(token, pages, began)
	for _, want := range []string{"https://app.example.org/reset#token=" + token, "made an account", "29 November 2026, 09:00 UTC"} {
		if !strings.Contains(welcome.Text, want) || !strings.Contains(welcome.HTML, want) {
			t.Errorf("%q is missing in\n%s", want, welcome.Text)
		}
	}
	letter = Letter{Kind: ToTell, Recipient: "bob@example.org", Note: "The password <was> changed."}
	told := New("m", letter, []byte("sealed"), began).Compose("", pages, began.Add(time.Hour))
	if strings.Contains(told.Text+told.HTML, "://") || !strings.Contains(told.HTML, "&lt;was&gt;") ||
		!strings.Contains(told.Text, "22 November 2026, 09:00 UTC") {
		t.Errorf("%+v", told)
	}
}

// Whatever a browser says of itself, a warning is one paragraph without a link.
func TestBrowsersAddNothingButText(t *testing.T) {
	warned := func(agent string) Message {
		return New("m", Letter{
			Kind: ToWarn, Recipient: "bob@example.org", Note: DeviceNote("192.0.2.1", agent),
		}, []byte("sealed"), began).Compose("", Pages{}, began.Add(time.Hour))
	}
	plain := warned("Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0")
	for _, want := range []string{
		"192.0.2.1", "Linux x86_64", "Firefox 140", "22 November 2026, 09:00 UTC", "choose another password",
	} {
		if !strings.Contains(plain.Text, want) || !strings.Contains(plain.HTML, want) {
			t.Errorf("%q is missing in\n%s", want, plain.Text)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		got := warned(hostile().Draw(t, "agent"))
		first, rest, _ := strings.Cut(got.Text, "\n")
		_, same, _ := strings.Cut(plain.Text, "\n")
		first = strings.Replace(first, "192.0.2.1", "", 1)
		if rest != same || linkable.MatchString(first) || strings.Count(got.HTML, "<") != strings.Count(plain.HTML, "<") ||
			utf8.RuneCountInString(first) > maxAgent+120 || !utf8.ValidString(first) {
			t.Fatalf("a browser adds to\n%s\n%s", got.Text, got.HTML)
		}
	})
}
