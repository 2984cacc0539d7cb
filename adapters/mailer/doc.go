// Package mailer implements ports.Mailer: over SMTP, and with a folder that takes a file for each mail.
//
// The library is go-mail. What is used of it builds messages and speaks SMTP. Its parser of mails (GHSA-f82v-42xw-72cj) and its
// helpers for unsubscribing (GHSA-w8w6-94hg-2qpm) have known holes in 0.8.1 and are not used.
package mailer
