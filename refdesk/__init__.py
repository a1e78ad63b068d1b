"""The one name that an installed Refdesk has in site-packages.

A wheel holds the application's packages (`agents`, `manager`, `config`, ...) in the folder `app`
below this package, where no other distribution can overwrite them or import them by mistake. Only
the `refdesk` command puts that folder on the module path. In a checkout the packages are at the top
level, and this folder holds nothing else.
"""
