module github.com/deckhouse/system-s3/tests/clients/program/trial

go 1.26.0
