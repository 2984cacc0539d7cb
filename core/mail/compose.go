package mail

import (
	"fmt"
	"html"
	"strings"
	"time"

	"github.com/pgherd/pgherd/core/account"
)

// may is what a role allows, in the words of the mail.
var may = map[account.Standing]string{
	account.Admin:     "You will be able to configure the database, its logins and its backups.",
	account.Developer: "You will be able to see the database, and to make and delete its backups.",
	account.Viewer:    "You will be able to see the database, and to download its backups.",
}

// Compose writes the mail, with the invitation's token. The names in it were chosen by customers: each is flattened.
func (m Mail) Compose(token string, page Link, now time.Time) Message {
	inviter, database := flatten(m.Inviter, "Somebody"), flatten(m.Database, "a database")
	c := content{
		intro:  fmt.Sprintf("%s invites you to the PostgreSQL database “%s” as %s.", inviter, database, m.Role),
		may:    may[m.Role],
		link:   page.with(token),
		token:  token,
		until:  "The invitation can be accepted once, until " + m.ExpiresAt.UTC().Format("2 January 2006, 15:04 UTC") + ".",
		secret: "Whoever has this mail can accept the invitation: do not forward it.",
		ignore: "If you expect no such invitation, ignore this mail: nothing happens then.",
	}
	return Message{
		ID: m.ID, At: now, To: m.Recipient, Subject: fmt.Sprintf("%s invites you to the database “%s”", inviter, database),
		Text: c.text(), HTML: c.html(),
	}
}

// content is what both forms of a mail say. Nothing in it is escaped.
type content struct {
	intro, may, link, token, until, secret, ignore string
}

const byAPI = "To accept, send this token to the service's API, with a name and a password of your own if you are new there:"

const acceptRequest = `POST /api/v1/invitations/accept
{"token": "%s", "name": "...", "password": "..."}`

func (c content) text() string {
	accept := "To accept, open this page:\n\n" + c.link
	if c.link == "" {
		accept = byAPI + "\n\n" + fmt.Sprintf(acceptRequest, c.token)
	}
	return strings.Join([]string{c.intro, c.may, accept, c.until, c.secret, c.ignore}, "\n\n") + "\n"
}

func (c content) html() string {
	var b strings.Builder
	b.WriteString("<!DOCTYPE html>\n<html><body>\n")
	for _, part := range []string{c.intro, c.may} {
		paragraph(&b, html.EscapeString(part))
	}
	if c.link == "" {
		paragraph(&b, html.EscapeString(byAPI))
		b.WriteString("<pre>" + html.EscapeString(fmt.Sprintf(acceptRequest, c.token)) + "</pre>\n")
	} else {
		link := html.EscapeString(c.link)
		paragraph(&b, `<a href="`+link+`">Accept the invitation</a>`)
		paragraph(&b, "Or open this page: "+link)
	}
	for _, part := range []string{c.until, c.secret, c.ignore} {
		paragraph(&b, html.EscapeString(part))
	}
	b.WriteString("</body></html>\n")
	return b.String()
}

func paragraph(b *strings.Builder, safe string) { b.WriteString("<p>" + safe + "</p>\n") }
