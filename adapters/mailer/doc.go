// Package mailer implements ports.Mailer: over SMTP, and with a folder that takes a file for each mail.
//
// The library is go-mail. What is used of it builds messages and speaks SMTP; its parser of mails and its helpers for unsubscribing
// have known holes in 0.8.1 and are not used.
package mailer
