"""Problems, and what a program's runs say about them."""
