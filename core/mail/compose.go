package mail

import (
	"fmt"
	"html"
	"slices"
	"strings"
	"time"

	"github.com/pgherd/pgherd/core/account"
)

// may is what a role allows, in the words of the mail.
func may(role account.Standing) string {
	switch role {
	case account.Admin:
		return "You will be able to configure the database, its logins and its backups."
	case account.Developer:
		return "You will be able to see the database, and to make and delete its backups."
	default:
		return "You will be able to see the database, and to download its backups."
	}
}

// Pages are where the links of mails lead.
type Pages struct{ Invitation, Reset Link }

// Lead reports whether the link of a mail leads anywhere. An invitation can do without.
func (p Pages) Lead(k Kind) bool { return k != ToWelcome && k != ToReset || p.Reset != Link{} }

// Compose writes the mail, with its token. The names in it were chosen by customers: each is flattened.
func (m Mail) Compose(token string, pages Pages, now time.Time) Message {
	switch m.Kind {
	case ToWelcome:
		return m.welcome(token, pages.Reset, now)
	case ToReset:
		return m.reset(token, pages.Reset, now)
	case ToTell:
		return m.notice("A change in how you log in", now)
	case ToWarn:
		return m.notice("A log-in on another device", now)
	default:
		return m.invitation(token, pages.Invitation, now)
	}
}

func (m Mail) invitation(token string, page Link, now time.Time) Message {
	inviter, database := flatten(m.Inviter, "Somebody"), flatten(m.Database, "a database")
	c := content{
		before: []string{
			fmt.Sprintf("%s invites you to the PostgreSQL database “%s” as %s.", inviter, database, m.Role), may(m.Role),
		},
		do: "To accept", title: "Accept the invitation", link: page.With(token),
		after: []string{
			"The invitation can be accepted once, until " + moment(m.ExpiresAt) + ".",
			"Whoever has this mail can accept the invitation: do not forward it.",
			"If you expect no such invitation, ignore this mail: nothing happens then.",
		},
	}
	if c.link == "" {
		c.before, c.example = append(c.before, byAPI), fmt.Sprintf(acceptRequest, token)
	}
	return m.message(c, fmt.Sprintf("%s invites you to the database “%s”", inviter, database), now)
}

const byAPI = "To accept, send this token to the service's API, with a name and a password of your own if you are new there:"

const acceptRequest = `POST /api/v1/invitations/accept
{"token": "%s", "name": "...", "password": "..."}`

func (m Mail) welcome(token string, page Link, now time.Time) Message {
	c := content{
		before: []string{"The operator of the service has made an account for " + m.Recipient + "."},
		do:     "To choose a password and log in", title: "Choose a password", link: page.With(token),
		after: []string{
			"The link works once, until " + moment(m.ExpiresAt) + ".",
			"Whoever has this mail can choose the password: do not forward it.",
			"If you expect no such account, ignore this mail.",
		},
	}
	return m.message(c, "Your account", now)
}

func (m Mail) reset(token string, page Link, now time.Time) Message {
	c := content{
		before: []string{"Somebody, probably you, asked for another password for " + m.Recipient + "."},
		do:     "To choose one", title: "Choose another password", link: page.With(token),
		after: []string{
			"The link works once, until " + moment(m.ExpiresAt) + ". All sessions end then.",
			"Whoever has this mail can choose the password: do not forward it.",
			"If you did not ask for this, ignore this mail: the password stays as it is.",
		},
	}
	return m.message(c, "Another password", now)
}

// DeviceNote is the note of a warning: the address of a client, and what its browser says of itself.
func DeviceNote(client, agent string) string {
	return fmt.Sprintf("Somebody logged in as you on a device on which you had not before, from the address %s, by “%s”.",
		client, flattenTo(maxAgent, agent, "an unknown browser"))
}

// maxAgent is how many characters a mail shows of what a browser says.
const maxAgent = 160

func (m Mail) notice(subject string, now time.Time) Message {
	c := content{
		before: []string{m.Note, "It happened on " + moment(m.CreatedAt) + "."},
		after: []string{
			"If it was not you, end all other sessions, choose another password if you have one, and tell whoever runs the service.",
		},
	}
	return m.message(c, subject, now)
}

func moment(t time.Time) string { return t.UTC().Format("2 January 2006, 15:04 UTC") }

// content is what both forms of a mail say. Nothing in it is escaped.
type content struct {
	before          []string // paragraphs
	example         string   // of a request, in place of a link
	do, title, link string
	after           []string
}

func (m Mail) message(c content, subject string, now time.Time) Message {
	return Message{ID: m.ID, At: now, To: m.Recipient, Subject: subject, Text: c.text(), HTML: c.html()}
}

func (c content) text() string {
	parts := slices.Clone(c.before)
	switch {
	case c.link != "":
		parts = append(parts, c.do+", open this page:", c.link)
	case c.example != "":
		parts = append(parts, c.example)
	}
	return strings.Join(append(parts, c.after...), "\n\n") + "\n"
}

func (c content) html() string {
	var b strings.Builder
	b.WriteString("<!DOCTYPE html>\n<html><body>\n")
	for _, part := range c.before {
		paragraph(&b, html.EscapeString(part))
	}
	switch {
	case c.link != "":
		link := html.EscapeString(c.link)
		paragraph(&b, `<a href="`+link+`">`+html.EscapeString(c.title)+`</a>`)
		paragraph(&b, "Or open this page: "+link)
	case c.example != "":
		b.WriteString("<pre>" + html.EscapeString(c.example) + "</pre>\n")
	}
	for _, part := range c.after {
		paragraph(&b, html.EscapeString(part))
	}
	b.WriteString("</body></html>\n")
	return b.String()
}

func paragraph(b *strings.Builder, safe string) { b.WriteString("<p>" + safe + "</p>\n") }
