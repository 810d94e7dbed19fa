#!/bin/sh
echo hello nobody
